//! Checks the health of each core of the pool.

use std::{sync::Arc, time::Duration};

use core_client::{ConnectError, CoreAddr, Cores, causes};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tonic::Status;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{Member, State, transport_failure::TransportFailure};

const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The sum of this timeout and the interval limits how long a call waits for an unreachable core,
/// even if packets are dropped silently: less than two seconds.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);

/// A check that takes longer than its timeout by this is late because this process had no time for it. The response
/// may have arrived long before.
const MAX_LATENESS: Duration = Duration::from_millis(100);

impl Member {
    /// Checks the health at once, and periodically until the member is dropped.
    pub(super) fn new(cores: &Cores, addr: &CoreAddr) -> Arc<Self> {
        let member = Arc::new(Self {
            addr: addr.clone(),
            channel: cores.channel(addr),
            state: watch::Sender::new(State::Unknown),
        });
        let weak = Arc::downgrade(&member);
        tokio::spawn(async move {
            while let Some(member) = weak.upgrade() {
                member.check().await;
                drop(member);
                sleep(CHECK_INTERVAL).await;
            }
        });
        member
    }

    /// Makes the member the last choice until a health check succeeds.
    pub(super) fn mark_down(&self, status: &Status) {
        self.set_state(State::Down, Some(status));
    }

    async fn check(&self) {
        let mut health = HealthClient::new(self.channel());
        let started = Instant::now();
        let response = timeout(CHECK_TIMEOUT, health.check(HealthCheckRequest::default())).await;
        let is_late = started.elapsed() > CHECK_TIMEOUT + MAX_LATENESS;
        let state = match &response {
            Ok(Ok(response)) => match response.get_ref().status() {
                ServingStatus::NotServing => State::NotReady,
                _ => State::Up,
            },
            // Core has responded, if only with an error, such as that it has no health service.
            Ok(Err(status)) if TransportFailure::of(status).is_none() => State::Up,
            // Else a gateway without processor time would say that no core is ready.
            Err(_) if is_late => return,
            Ok(Err(_)) | Err(_) => State::Down,
        };
        self.set_state(state, response.ok().and_then(Result::err).as_ref());
    }

    /// `failed` is the error of the call from which the state follows; none if the call succeeded or
    /// timed out.
    fn set_state(&self, state: State, failed: Option<&Status>) {
        let before = self.state.send_replace(state);
        let core = &self.addr;
        match state {
            _ if before == state => {}
            State::Up if before == State::Unknown => {}
            State::Unknown => {}
            State::Up => tracing::info!(%core, "core is up"),
            State::NotReady => tracing::warn!(%core, "core is not ready or is shutting down"),
            State::Down => {
                let reason =
                    failed.map_or_else(|| format!("no response within {CHECK_TIMEOUT:?}"), reason);
                tracing::warn!(%core, reason, "core unreachable, retrying");
            }
        }
    }
}

/// Why a core cannot be called: the message of the connector's error, or of the root cause.
fn reason(status: &Status) -> String {
    causes(status)
        .find(|cause| cause.is::<ConnectError>())
        .or_else(|| causes(status).last())
        .map_or_else(|| status.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, task::yield_now, time::advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_check_says_that_a_core_is_down_unless_this_process_was_late() {
        // It accepts connections, and answers nothing.
        let core = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let urls = [format!("http://{}", core.local_addr().unwrap())
            .parse()
            .unwrap()];
        let cores = Cores::new(&urls, &core_client::CoreConfig::default()).unwrap();
        let addrs = cores.addresses().await.unwrap();
        let member = Member::new(&cores, &addrs[0]);
        yield_now().await;

        advance(CHECK_TIMEOUT + MAX_LATENESS * 2).await;
        sleep(CHECK_INTERVAL / 2).await;
        assert_eq!(member.state(), State::Unknown);

        sleep(CHECK_INTERVAL + CHECK_TIMEOUT).await;
        assert_eq!(member.state(), State::Down);
    }
}
