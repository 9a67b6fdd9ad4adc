//! The cores that were named, and how each is called.

use std::{fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use clap::Args;
use process::tls::{self, Watched};
use rustls::ClientConfig;
use tonic::transport::{Channel, Endpoint};

use crate::{
    connecting::{ConnectError, Connector},
    core_url::CoreUrl,
    membership,
    tls::open,
};

/// A core that is silent for so long is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// A core that then does not answer for so long has lost the connection. Longer than what takes
/// it out of rotation: calls under way end with the connection, and some can't be repeated.
const PING_TIMEOUT: Duration = Duration::from_secs(4);

/// Violations come back in headers: room for as many as a body can have.
const MAX_HEADER_BYTES: u32 = 1024 * 1024;

/// Settings of TLS towards cores. All files are PEM; a change of theirs is in force for the next
/// connection.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreConfig {
    /// Authorities that vouch for cores, instead of the system's (PEM); may be repeated. Files
    /// that change are read again for the next connection
    #[arg(
        long,
        env = "DELIVERY_CORE_TLS_CA",
        value_name = "FILE",
        value_delimiter = ',',
        global = true,
        help_heading = CALLING
    )]
    pub core_tls_ca: Vec<PathBuf>,

    /// Certificate to show to cores that demand one (PEM)
    #[arg(
        long,
        env = "DELIVERY_CORE_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "core_tls_key",
        global = true,
        help_heading = CALLING
    )]
    pub core_tls_certificate: Option<PathBuf>,

    /// Private key of that certificate (PEM), readable by its owner alone
    #[arg(
        long,
        env = "DELIVERY_CORE_TLS_KEY",
        value_name = "FILE",
        requires = "core_tls_certificate",
        global = true,
        help_heading = CALLING
    )]
    pub core_tls_key: Option<PathBuf>,

    /// Let a core that is not on this machine be called without TLS: tokens and secrets pass in
    /// the clear
    #[arg(
        long,
        env = "DELIVERY_ALLOW_PLAINTEXT_CORE",
        global = true,
        help_heading = CALLING
    )]
    pub allow_plaintext_core: bool,
}

const CALLING: &str = "How cores are called";

/// Why cores can't be called as they were named.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no core is named: give --core-url")]
    NoCore,
    #[error(
        "tokens and secrets would pass in the clear to {0}: use https, or say --allow-plaintext-core"
    )]
    Plaintext(CoreUrl),
    #[error("cores cannot be called over TLS")]
    Tls(#[from] tls::Error),
}

/// One of the addresses at which there is a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreAddr {
    pub(crate) url: Arc<CoreUrl>,
    pub(crate) addr: SocketAddr,
}

impl CoreAddr {
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

/// The URL, and the address too if the URL does not tell it.
impl fmt::Display for CoreAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.url.ip() {
            Some(_) => write!(f, "{}", self.url),
            None => write!(f, "{} at {}", self.url, self.addr),
        }
    }
}

/// The cores to call.
#[derive(Clone, Debug)]
pub struct Cores {
    pub(crate) urls: Vec<Arc<CoreUrl>>,
    tls: Option<Arc<Watched<ClientConfig>>>,
}

impl Cores {
    /// Checks everything but whether anybody is there.
    pub fn new(urls: &[CoreUrl], config: &CoreConfig) -> Result<Self, Error> {
        if urls.is_empty() {
            return Err(Error::NoCore);
        }
        let exposed = urls
            .iter()
            .find(|url| !(url.is_tls() || url.is_loopback() || config.allow_plaintext_core));
        if let Some(url) = exposed {
            return Err(Error::Plaintext(url.clone()));
        }
        let tls = if urls.iter().any(CoreUrl::is_tls) {
            Some(Arc::new(open(config)?))
        } else {
            None
        };
        Ok(Self {
            urls: urls.iter().cloned().map(Arc::new).collect(),
            tls,
        })
    }

    /// A way to a core that connects when it is used, and again when it has lost the connection.
    pub fn channel(&self, core: &CoreAddr) -> Channel {
        endpoint(core).connect_with_connector_lazy(self.connector(core))
    }

    /// As [`Cores::channel`], but connected.
    pub async fn connect(&self, core: &CoreAddr) -> Result<Channel, ConnectError> {
        endpoint(core)
            .connect_with_connector(self.connector(core))
            .await
            .map_err(|error| ConnectError::of_channel(&error))
    }

    /// Connects to the first that can be reached, or tells of the last that can't.
    pub async fn connect_to_any(&self) -> Result<Channel, ConnectError> {
        let mut why = None;
        for addr in membership::addresses(self).await {
            match self.connect(&addr).await {
                Ok(channel) => return Ok(channel),
                Err(error) => why = Some(error),
            }
        }
        let names = || {
            let urls: Vec<_> = self.urls.iter().map(ToString::to_string).collect();
            ConnectError::no_address(&urls.join(", "))
        };
        Err(why.unwrap_or_else(names))
    }

    fn connector(&self, core: &CoreAddr) -> Connector {
        let tls = self.tls.as_ref().filter(|_| core.url.is_tls());
        Connector::new(core, tls.cloned())
    }
}

fn endpoint(core: &CoreAddr) -> Endpoint {
    // Where to connect to, and how, the connector knows.
    Endpoint::from_shared(format!("http://{}", core.addr))
        .expect("a socket address is the authority of a URL")
        .origin(
            core.url
                .to_string()
                .parse()
                .expect("a core's URL is one by its making"),
        )
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .keep_alive_while_idle(true)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_elsewhere_is_called_in_plaintext_only_if_allowed() {
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
                    "tokens and secrets would pass in the clear to http://core.example:50051: use https, or say --allow-plaintext-core",
                ),
            ),
        ] {
            let config = CoreConfig {
                allow_plaintext_core,
                ..CoreConfig::default()
            };
            let refused = Cores::new(&[url.parse().unwrap()], &config)
                .err()
                .map(|error| error.to_string());
            assert_eq!(refused.as_deref(), expected, "{url}");
        }
    }
}
