//! A closed loop of HTTP/1.1 requests: each connection sends the next request when it has read the
//! last response.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::{join_all, try_join_all};
use http_body_util::{BodyExt, Full};
use hyper::{Request, client::conn::http1, http::HeaderValue};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// A request that has this header gets a new key each time.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub(crate) type Connection = http1::SendRequest<Full<Bytes>>;

/// Where to send which requests. Of n connections, the one with number i sends the requests i, i + n, i + 2n
/// and so on.
pub(crate) struct Load {
    pub(crate) addr: String,
    pub(crate) requests: Vec<Request<Full<Bytes>>>,
    connections: usize,
    /// Whether the first request follows the last.
    pub(crate) repeats: bool,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) requests: f64,
    /// Per second.
    pub(crate) rate: f64,
    /// The 99th percentile of response times, in milliseconds, if it was measured.
    pub(crate) p99: Option<f64>,
}

impl Load {
    pub(crate) fn new(
        base_url: &str,
        requests: Vec<Request<Full<Bytes>>>,
        connections: usize,
    ) -> Self {
        Self {
            addr: base_url.strip_prefix("http://").unwrap().to_owned(),
            requests,
            connections,
            repeats: true,
        }
    }

    /// Sends requests for a while. Each must succeed.
    #[expect(clippy::cast_precision_loss, reason = "rounded for display")]
    pub(crate) async fn run(&self, duration: Duration) -> Sample {
        let connections = (0..self.connections).map(|_| connect(&self.addr));
        let connections = try_join_all(connections).await.unwrap();
        let started = Instant::now();
        let until = started + duration;
        let times = join_all(connections.into_iter().enumerate().map(
            |(index, mut connection)| async move {
                let mut times = Vec::new();
                for number in (index..).step_by(self.connections) {
                    let Some(request) = self.request(number) else {
                        break;
                    };
                    let sent = Instant::now();
                    if sent >= until {
                        break;
                    }
                    connection.ready().await.unwrap();
                    let response = connection
                        .send_request(with_new_key(request))
                        .await
                        .unwrap();
                    let status = response.status();
                    let body = response.into_body().collect().await.unwrap().to_bytes();
                    assert!(status.is_success(), "{status} {body:?}");
                    times.push(sent.elapsed());
                }
                times
            },
        ))
        .await;
        let elapsed = started.elapsed();
        let mut times: Vec<_> = times.into_iter().flatten().collect();
        times.sort_unstable();
        let requests = times.len() as f64;
        Sample {
            requests,
            rate: requests / elapsed.as_secs_f64(),
            p99: Some(times[times.len() * 99 / 100].as_secs_f64() * 1000.0),
        }
    }
}

impl Load {
    fn request(&self, number: usize) -> Option<&Request<Full<Bytes>>> {
        let count = self.requests.len();
        self.requests
            .get(if self.repeats { number % count } else { number })
    }
}

/// The request, with a new idempotency key in place of one.
pub(crate) fn with_new_key(request: &Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    let mut request = request.clone();
    if let Some(key) = request.headers_mut().get_mut(IDEMPOTENCY_KEY) {
        *key = HeaderValue::from_str(&uuid::Uuid::now_v7().to_string()).unwrap();
    }
    request
}

pub(crate) async fn connect(
    addr: &str,
) -> Result<Connection, Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
