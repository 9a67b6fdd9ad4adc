//! An honest client: how many of its calls succeed, and how fast.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Error, Result, bail};
use proto::{GetCurrentApiClientRequest, api_clients_client::ApiClientsClient};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{MissedTickBehavior, interval, timeout},
};
use tonic::transport::{Channel, Endpoint};

use crate::{caller::Caller, grpc::with_token};

/// A call begins this often, however long the earlier ones take.
const INTERVAL: Duration = Duration::from_millis(40);

/// A slower call has failed. Programs without optimization, as tests use them, take seconds for large lists.
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(super) struct HonestClient {
    pub(super) shop: Caller,
    pub(super) rest: SocketAddr,
    pub(super) endpoint: Endpoint,
    pub(super) channel: Channel,
}

/// The calls of a period.
pub(super) struct Figures {
    /// Of those that began in each second of it.
    pub(super) seconds: BTreeMap<u64, Goodput>,
    /// Why some failed.
    pub(super) failures: Vec<String>,
    median: Duration,
}

/// How many calls were made, and how many of them succeeded.
#[derive(Clone, Copy, Default)]
pub(super) struct Goodput {
    pub(super) calls: usize,
    pub(super) served: usize,
}

impl Goodput {
    fn percent(self) -> usize {
        self.served * 100 / self.calls
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds.values().map(|second| second.percent());
        let worst = seconds.min().unwrap_or_default();
        write!(f, "{worst} % {} ms", self.median.as_millis())
    }
}

impl HonestClient {
    /// Calls both APIs for a time, on open and on new connections.
    pub(super) async fn serve(&self, time: Duration) -> Figures {
        let client = Arc::new(self.clone());
        let mut calls = JoinSet::new();
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let started = Instant::now();
        let mut number = 0;
        while started.elapsed() < time {
            ticks.tick().await;
            let client = Arc::clone(&client);
            calls.spawn(async move {
                let begun = Instant::now();
                let served = timeout(TIMEOUT, client.call(number)).await;
                let served = served.map_err(Error::from).flatten();
                ((begun - started).as_secs(), begun.elapsed(), served)
            });
            number += 1;
        }
        let mut seconds = BTreeMap::<_, Goodput>::new();
        let (mut times, mut failures) = (Vec::new(), Vec::new());
        for (second, time, result) in calls.join_all().await {
            let goodput = seconds.entry(second).or_default();
            goodput.calls += 1;
            match result {
                Ok(()) => {
                    goodput.served += 1;
                    times.push(time);
                }
                Err(error) => failures.push(format!("{error:#} after {time:?}")),
            }
        }
        times.sort_unstable();
        Figures {
            seconds,
            failures,
            median: times.get(times.len() / 2).copied().unwrap_or(TIMEOUT),
        }
    }

    async fn call(&self, number: usize) -> Result<()> {
        match number % 4 {
            0 => self.shop.get("/api/me").await.map(drop)?,
            1 => self.get("/api/me").await?,
            2 => self.get_over_grpc(self.channel.clone()).await?,
            _ if number % 100 == 3 => self.shop.request_token().await.map(drop)?,
            _ if number % 8 == 7 => self.get("/readyz").await?,
            _ => self.get_over_grpc(self.endpoint.connect().await?).await?,
        }
        Ok(())
    }

    /// A request on a new connection, which succeeds.
    async fn get(&self, path: &str) -> Result<()> {
        let mut stream = TcpStream::connect(self.rest).await?;
        let token = self.shop.token();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        if !response.starts_with("HTTP/1.1 200 ") {
            bail!("{response}");
        }
        Ok(())
    }

    async fn get_over_grpc(&self, channel: Channel) -> Result<()> {
        let request = with_token(self.shop.token(), GetCurrentApiClientRequest {});
        let mut clients = ApiClientsClient::new(channel);
        clients.get_current_api_client(request).await?;
        Ok(())
    }
}
