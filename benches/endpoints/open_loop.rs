//! An open loop of HTTP/1.1 requests: they are sent at a constant rate, however slow the responses
//! are, each on a connection that has no other.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use http_body_util::BodyExt;
use hyper::{Request, StatusCode, header::RETRY_AFTER};
use tokio::{sync::mpsc, time::MissedTickBehavior};

use crate::{
    load::{Connection, Load, connect, with_new_key},
    requests::Body,
};

/// How many connections there are at most. Requests are not sent while all are in use.
const MAX_CONNECTIONS: usize = 2048;

/// How often the requests that are due are sent.
const TICK: Duration = Duration::from_millis(1);

/// What became of the requests of one run.
#[derive(Default)]
pub(crate) struct Outcomes {
    pub(crate) due: usize,
    /// Response times since the requests were due, in milliseconds.
    pub(crate) accepted: Vec<f64>,
    /// Answered with 429 or 503 and `Retry-After`.
    pub(crate) rejected: usize,
    /// Not sent, as all connections were in use.
    pub(crate) unsent: usize,
    /// Other statuses, 429 and 503 without `Retry-After`, and closed connections.
    pub(crate) failed: usize,
    pub(crate) elapsed: Duration,
}

impl Outcomes {
    /// Accepted requests per second.
    #[expect(clippy::cast_precision_loss, reason = "rounded for display")]
    pub(crate) fn goodput(&self) -> f64 {
        self.accepted.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// The 99th percentile of the accepted requests' response times, in milliseconds.
    pub(crate) fn p99(&mut self) -> f64 {
        self.accepted.sort_by(f64::total_cmp);
        let index = self.accepted.len() * 99 / 100;
        self.accepted.get(index).copied().unwrap_or(f64::NAN)
    }
}

enum Outcome {
    Accepted,
    Rejected,
    Failed,
}

/// Sends `rate` requests a second for `duration`, and waits for their responses.
#[expect(clippy::cast_precision_loss, reason = "below 2⁵³")]
pub(crate) async fn run(load: &Load, rate: f64, duration: Duration) -> Outcomes {
    // Opened at first use, and again after an error. The last used is used first.
    let idle: Vec<Option<Connection>> = (0..MAX_CONNECTIONS).map(|_| None).collect();
    let idle = Arc::new(Mutex::new(idle));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let mut outcomes = Outcomes::default();
    let started = Instant::now();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut requests = load.requests.iter().cycle();
    while started.elapsed() < duration {
        ticks.tick().await;
        let elapsed = started.elapsed().min(duration);
        while Duration::from_secs_f64(outcomes.due as f64 / rate) <= elapsed {
            let due = started + Duration::from_secs_f64(outcomes.due as f64 / rate);
            outcomes.due += 1;
            let Some(connection) = idle.lock().unwrap().pop() else {
                outcomes.unsent += 1;
                continue;
            };
            let request = with_new_key(requests.next().unwrap());
            let (addr, idle, sender) = (load.addr.clone(), Arc::clone(&idle), sender.clone());
            tokio::spawn(async move {
                let answer = send(connection, &addr, request).await;
                let (outcome, connection) =
                    answer.map_or((Outcome::Failed, None), |answer| (answer.0, Some(answer.1)));
                idle.lock().unwrap().push(connection);
                let _ = sender.send((outcome, due.elapsed()));
            });
        }
    }
    drop(sender);
    while let Some((outcome, time)) = receiver.recv().await {
        match outcome {
            Outcome::Accepted => outcomes.accepted.push(time.as_secs_f64() * 1000.0),
            Outcome::Rejected => outcomes.rejected += 1,
            Outcome::Failed => outcomes.failed += 1,
        }
    }
    outcomes.elapsed = started.elapsed();
    outcomes
}

async fn send(
    connection: Option<Connection>,
    addr: &str,
    request: Request<Body>,
) -> Result<(Outcome, Connection), Box<dyn std::error::Error + Send + Sync>> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => connect(addr).await?,
    };
    connection.ready().await?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    let is_retryable = response.headers().contains_key(RETRY_AFTER);
    response.into_body().collect().await?;
    let outcome = match status {
        status if status.is_success() => Outcome::Accepted,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE if is_retryable => {
            Outcome::Rejected
        }
        _ => Outcome::Failed,
    };
    Ok((outcome, connection))
}
