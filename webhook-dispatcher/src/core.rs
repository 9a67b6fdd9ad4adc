//! One core as its client sees it: where it is, the access token, and the stream of
//! notifications.

use std::{net::IpAddr, time::Duration};

use proto::{
    IssueTokenRequest, StreamRequest, StreamResponse, notifications_client::NotificationsClient,
    tokens_client::TokensClient,
};
use rustls::RootCertStore;
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Request, Status, Streaming,
    metadata::{Ascii, MetadataValue, errors::InvalidMetadataValue},
    transport::{Channel, ClientTlsConfig, Endpoint},
};
use url::{Host, Url};

use crate::{ClientSecret, ConfigError};

const SCOPE: &str = "notifications";
/// How long it may take to connect, get a token and open the stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// A core that answers no ping for twice this long is gone.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// How long before its end a token is no longer used for a new stream.
const RENEWAL_MARGIN: Duration = Duration::from_mins(1);
/// Room for a claim as large as the credit of any sensible configuration.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// A core and the access token for it.
pub(crate) struct Core {
    endpoint: Endpoint,
    key: String,
    secret: ClientSecret,
    token: Option<Token>,
}

struct Token {
    authorization: MetadataValue<Ascii>,
    renew_at: Instant,
}

/// An open stream: to end it, drop `requests` and read `responses` to the end.
pub(crate) struct Stream {
    pub requests: mpsc::Sender<StreamRequest>,
    pub responses: Streaming<StreamResponse>,
}

/// Why there is no stream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("core is not reachable")]
    Unreachable(#[from] tonic::transport::Error),
    #[error("core issues no access token")]
    Token(#[source] Status),
    #[error("core issued an access token that is not one")]
    NotAToken(#[from] InvalidMetadataValue),
    #[error("core opens no stream")]
    Stream(#[source] Status),
    #[error("core did not open a stream within {OPEN_TIMEOUT:?}")]
    Timeout,
}

/// How a core is called, over TLS if its URL says so.
pub(crate) fn endpoint(
    url: &str,
    allow_plaintext: bool,
    roots: &RootCertStore,
) -> Result<Endpoint, ConfigError> {
    let unusable = |source| ConfigError::CoreUrl {
        url: url.to_owned(),
        source,
    };
    let parsed = Url::parse(url).map_err(|_| unusable(None))?;
    let endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(|error| unusable(Some(error)))?
        .tcp_nodelay(true)
        .connect_timeout(OPEN_TIMEOUT)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .keep_alive_while_idle(true);
    match parsed.scheme() {
        "https" => {
            let tls = ClientTlsConfig::new().trust_anchors(roots.roots.iter().cloned());
            endpoint
                .tls_config(tls)
                .map_err(|error| unusable(Some(error)))
        }
        "http" if allow_plaintext || is_loopback(&parsed) => Ok(endpoint),
        "http" => Err(ConfigError::PlaintextCore(url.to_owned())),
        _ => Err(unusable(None)),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

impl Core {
    pub(crate) fn new(endpoint: Endpoint, key: String, secret: ClientSecret) -> Self {
        Self {
            endpoint,
            key,
            secret,
            token: None,
        }
    }

    /// Where it is, for logs.
    pub(crate) fn url(&self) -> String {
        self.endpoint.uri().to_string()
    }

    /// Opens a stream that begins with a first request.
    pub(crate) async fn open(&mut self, first: StreamRequest) -> Result<Stream, OpenError> {
        tokio::time::timeout(OPEN_TIMEOUT, self.open_without_limit(first))
            .await
            .unwrap_or(Err(OpenError::Timeout))
    }

    /// Notes that core refused the token, whatever its age.
    pub(crate) fn forget_token_if_refused(&mut self, status: &Status) {
        if status.code() == Code::Unauthenticated {
            self.token = None;
        }
    }

    async fn open_without_limit(&mut self, first: StreamRequest) -> Result<Stream, OpenError> {
        let channel = self.endpoint.connect().await?;
        let authorization = self.authorization(&channel).await?;

        // One message at most waits here, so that outcomes gather while core is busy.
        let (requests, outgoing) = mpsc::channel(1);
        let outgoing = tokio_stream::StreamExt::chain(
            tokio_stream::once(first),
            ReceiverStream::new(outgoing),
        );
        let mut request = Request::new(outgoing);
        request
            .metadata_mut()
            .insert("authorization", authorization);

        let response = NotificationsClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE)
            .stream(request)
            .await
            .map_err(|status| {
                self.forget_token_if_refused(&status);
                OpenError::Stream(status)
            })?;
        Ok(Stream {
            requests,
            responses: response.into_inner(),
        })
    }

    async fn authorization(
        &mut self,
        channel: &Channel,
    ) -> Result<MetadataValue<Ascii>, OpenError> {
        match &self.token {
            Some(token) if Instant::now() < token.renew_at => Ok(token.authorization.clone()),
            _ => {
                let token = self.issue_token(channel).await?;
                Ok(self.token.insert(token).authorization.clone())
            }
        }
    }

    async fn issue_token(&self, channel: &Channel) -> Result<Token, OpenError> {
        let asked = Instant::now();
        let issued = TokensClient::new(channel.clone())
            .issue_token(IssueTokenRequest {
                api_key: self.key.clone(),
                api_secret: self.secret.expose().to_owned(),
                scopes: vec![SCOPE.to_owned()],
            })
            .await
            .map_err(OpenError::Token)?
            .into_inner();

        let mut authorization: MetadataValue<Ascii> =
            format!("Bearer {}", issued.access_token).parse()?;
        authorization.set_sensitive(true);
        let lifetime = Duration::from_secs(issued.expires_in.into());
        Ok(Token {
            authorization,
            renew_at: asked + lifetime.saturating_sub(RENEWAL_MARGIN.min(lifetime / 2)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_elsewhere_is_called_in_plaintext_only_if_allowed() {
        let roots = RootCertStore::empty();
        for (url, allowed, expected) in [
            ("http://127.0.0.1:50051", false, Ok(())),
            ("http://[::1]:50051", false, Ok(())),
            ("http://localhost:50051", false, Ok(())),
            ("https://core.example", false, Ok(())),
            ("http://core.example", true, Ok(())),
            (
                "http://core.example",
                false,
                Err(
                    "core url `http://core.example` is not on this machine: use https, or --allow-plaintext-core",
                ),
            ),
            (
                "core.example:50051",
                true,
                Err(
                    "core url `core.example:50051` is not usable: write it as http://host:port or https://host:port",
                ),
            ),
            (
                "",
                true,
                Err("core url `` is not usable: write it as http://host:port or https://host:port"),
            ),
        ] {
            let result = endpoint(url, allowed, &roots).map(drop);
            assert_eq!(
                result.map_err(|error| error.to_string()),
                expected.map_err(str::to_owned),
                "{url}"
            );
        }
    }
}
