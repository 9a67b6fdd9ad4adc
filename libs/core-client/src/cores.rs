//! The configured cores, and channels to each of their addresses.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use http::Uri;
use process::{local_calls::LocalChannel, reloading::Reloading};
use rustls::ClientConfig;
use tonic::transport::{self, Endpoint};
use tower::{Service, service_fn, util::Either};

use crate::{
    config::CoreConfig,
    connector::{ConnectError, Connection, Connector},
    core_url::{CoreAddr, CoreUrl},
    discovery::{self, Discovery},
};

/// Idle time after which a core is pinged.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// Time without an answer to a ping after which the connection is closed. Longer than the
/// gateway's health check of a core: closing the connection cancels calls in flight, and not all of
/// them are safe to retry.
const PING_TIMEOUT: Duration = Duration::from_secs(4);

/// Limit of a call over a connection by an operator's command or a dispatcher, until its response
/// starts. Core's own limits are below 30 s.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// The maximum size of response headers. An error's headers contain the violations: those of the
/// largest request body must fit.
const MAX_HEADER_BYTES: u32 = 1024 * 1024;

/// Calls a core: in the same process, or over a connection.
pub type Channel = Either<LocalChannel, transport::Channel>;

/// The cores to call, by URL.
#[derive(Clone, Debug)]
pub struct Cores {
    urls: Vec<Arc<CoreUrl>>,
    tls: Option<Arc<Reloading<ClientConfig>>>,
    local: Option<LocalChannel>,
}

impl Cores {
    /// Validates the URLs and loads the TLS files. Does not connect.
    pub fn new(urls: &[CoreUrl], config: &CoreConfig) -> anyhow::Result<Self> {
        ensure!(!urls.is_empty(), "no core url given: set --core-url");
        for url in urls {
            ensure!(
                url.is_tls() || url.is_loopback() || config.allow_plaintext_core,
                "tokens and secrets would be sent unencrypted to {url}: use https, or set --allow-plaintext-core"
            );
        }
        let tls = if urls.iter().any(CoreUrl::is_tls) {
            let opened = config.open_tls();
            Some(Arc::new(
                opened.context("TLS for calls to cores cannot be set up")?,
            ))
        } else {
            None
        };
        Ok(Self {
            urls: urls.iter().cloned().map(Arc::new).collect(),
            tls,
            local: config.local.clone(),
        })
    }

    /// A channel that connects on first use and reconnects when the connection is lost.
    pub fn channel(&self, core: &CoreAddr) -> Channel {
        match &self.local {
            Some(local) => Either::Left(local.clone()),
            None => Either::Right(endpoint(core).connect_with_connector_lazy(self.connector(core))),
        }
    }

    /// Connects before it returns the channel. Its calls fail if no response starts within a
    /// minute; calls in the same process have only the caller's and core's own limits.
    pub async fn connect(&self, core: &CoreAddr) -> Result<Channel, ConnectError> {
        self.connect_with_timeout(core, CALL_TIMEOUT).await
    }

    async fn connect_with_timeout(
        &self,
        core: &CoreAddr,
        timeout: Duration,
    ) -> Result<Channel, ConnectError> {
        if let Some(local) = &self.local {
            return Ok(Either::Left(local.clone()));
        }
        endpoint(core)
            .timeout(timeout)
            .connect_with_connector(self.connector(core))
            .await
            .map(Either::Right)
            .map_err(|error| ConnectError::from_channel(&error))
    }

    /// Watches the addresses of the cores.
    pub fn discover(&self) -> Discovery {
        Discovery::start(self.urls.clone())
    }

    /// The addresses, looked up once, in the order of the URLs.
    pub async fn addresses(&self) -> Result<Vec<CoreAddr>, ConnectError> {
        let addresses = discovery::addresses(&self.urls).await;
        if addresses.is_empty() {
            let urls: Vec<_> = self.urls.iter().map(ToString::to_string).collect();
            return Err(ConnectError(format!(
                "{} has no address: check the host name",
                urls.join(", ")
            )));
        }
        Ok(addresses)
    }

    fn connector(
        &self,
        core: &CoreAddr,
    ) -> impl Service<Uri, Response = Connection, Error = ConnectError, Future: Send> + use<> {
        let tls = self.tls.as_ref().filter(|_| core.url.is_tls());
        let connector = Connector {
            core: core.clone(),
            tls: tls.cloned(),
        };
        service_fn(move |_| connector.clone().connect())
    }
}

fn endpoint(core: &CoreAddr) -> Endpoint {
    // The connector knows the address and whether to use TLS: this URI is not used to connect.
    Endpoint::from_shared(format!("http://{}", core.addr))
        .expect("a socket address is the authority of a URL")
        .origin(
            core.url
                .to_string()
                .parse()
                .expect("a core's URL is a valid URI"),
        )
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use tonic::{TimeoutExpired, body::Body};
    use tower::ServiceExt as _;

    use super::*;
    use crate::error_chain::is_caused_by;

    #[tokio::test]
    async fn a_call_fails_if_core_answers_pings_only() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let core = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let _unanswered = connection.accept().await;
            connection.accept().await
        });
        let urls = [format!("http://{addr}").parse().unwrap()];
        let cores = Cores::new(&urls, &CoreConfig::default()).unwrap();
        let addresses = cores.addresses().await.unwrap();
        let timeout = Duration::from_millis(1);
        let channel = cores.connect_with_timeout(&addresses[0], timeout);

        let called = channel
            .await
            .unwrap()
            .oneshot(http::Request::new(Body::empty()))
            .await;

        assert!(is_caused_by::<TimeoutExpired>(&called.unwrap_err()));
        core.abort();
    }

    #[test]
    fn a_remote_core_is_called_in_plaintext_only_if_allowed() {
        for (url, allow_plaintext_core, expected) in [
            ("http://127.0.0.1:50051", false, None),
            ("http://[::1]:50051", false, None),
            ("http://localhost:50051", false, None),
            ("https://core.example", false, None),
            ("http://core.example", true, None),
            (
                "http://core.example",
                false,
                Some(
                    "tokens and secrets would be sent unencrypted to http://core.example:50051: use https, or set --allow-plaintext-core",
                ),
            ),
        ] {
            let config = CoreConfig {
                allow_plaintext_core,
                ..CoreConfig::default()
            };
            let error = Cores::new(&[url.parse().unwrap()], &config)
                .err()
                .map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected, "{url}");
        }
    }
}
