//! Opens streams of notifications from one core: connects, gets an access token, calls the RPC.

use std::time::Duration;

use core_client::{Channel, ConnectError, CoreAddr, Cores};
use proto::{
    IssueTokenRequest, ReceiveRequest, ReceiveResponse, notifications_client::NotificationsClient,
    tokens_client::TokensClient,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Status, Streaming,
    metadata::{Ascii, MetadataValue, errors::InvalidMetadataValue},
};

use crate::{
    backoff::Backoff,
    config::SecretSource,
    connections::{Connection, Token},
};

const SCOPE: &str = "notifications";
/// Timeout for connecting, getting a token and opening the stream together.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long before its expiry a token is renewed.
const RENEWAL_MARGIN: Duration = Duration::from_mins(1);
/// The maximum size of a response: large enough for notifications that use all capacity at once.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Opens streams to one core. Keeps the access token for the next stream.
#[derive(Clone)]
pub(crate) struct StreamOpener {
    cores: Cores,
    addr: CoreAddr,
    key: String,
    secret: SecretSource,
    token: Option<Token>,
}

/// An open stream. To half-close it, drop `requests` and read `responses` to the end.
pub(crate) struct NotificationStream {
    pub requests: mpsc::Sender<ReceiveRequest>,
    pub responses: Streaming<ReceiveResponse>,
    pub connection: Connection,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Unreachable(#[from] ConnectError),
    #[error("core did not issue an access token")]
    Token(#[source] Status),
    #[error("core issued a malformed access token")]
    MalformedToken(#[from] InvalidMetadataValue),
    #[error("core rejected the stream")]
    Stream(#[source] Status),
    #[error("core did not open a stream within {OPEN_TIMEOUT:?}")]
    Timeout,
}

impl StreamOpener {
    pub(crate) fn new(cores: Cores, addr: CoreAddr, key: String, secret: SecretSource) -> Self {
        Self {
            cores,
            addr,
            key,
            secret,
            token: None,
        }
    }

    pub(crate) fn addr(&self) -> &CoreAddr {
        &self.addr
    }

    pub(crate) async fn open(
        &mut self,
        first: ReceiveRequest,
    ) -> Result<NotificationStream, OpenError> {
        timeout(OPEN_TIMEOUT, self.open_without_timeout(first))
            .await
            .unwrap_or(Err(OpenError::Timeout))
    }

    /// Gets a new token at an instant and returns the opener that has it. Retries until it succeeds:
    /// drop the future when it is not needed any more.
    pub(crate) fn renewed_at(&self, instant: Instant) -> impl Future<Output = Self> + Send + use<> {
        let mut opener = self.clone();
        async move {
            sleep_until(instant).await;
            let mut backoff = Backoff::default();
            loop {
                let connecting = timeout(OPEN_TIMEOUT, opener.connect());
                let Err(error) = connecting.await.unwrap_or(Err(OpenError::Timeout)) else {
                    return opener;
                };
                let wait = backoff.next();
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    ?wait,
                    "the access token of the stream from core could not be renewed before its \
                     expiry, retrying"
                );
                sleep(wait).await;
            }
        }
    }

    /// Discards the token if core rejected it before its expiry.
    pub(crate) fn discard_rejected_token(&mut self, status: &Status) {
        if status.code() == Code::Unauthenticated {
            self.discard_token();
        }
    }

    pub(crate) fn discard_token(&mut self) {
        self.token = None;
    }

    /// Connects, and gets a token if there is none or if it expires soon.
    async fn connect(&mut self) -> Result<Connection, OpenError> {
        let channel = self.cores.connect(&self.addr).await?;
        let token = self.token(&channel).await?;
        Ok(Connection {
            core: self.addr.clone(),
            channel,
            token,
        })
    }

    async fn open_without_timeout(
        &mut self,
        first: ReceiveRequest,
    ) -> Result<NotificationStream, OpenError> {
        let connection = self.connect().await?;
        // At most one message is buffered, so that capacity is summed up while core is busy.
        let (requests, outgoing) = mpsc::channel(1);
        let outgoing = tokio_stream::StreamExt::chain(
            tokio_stream::once(first),
            ReceiverStream::new(outgoing),
        );
        let response = NotificationsClient::new(connection.channel.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .receive(connection.authorized(outgoing))
            .await
            .map_err(|status| {
                self.discard_rejected_token(&status);
                OpenError::Stream(status)
            })?;
        Ok(NotificationStream {
            requests,
            responses: response.into_inner(),
            connection,
        })
    }

    async fn token(&mut self, channel: &Channel) -> Result<Token, OpenError> {
        match &self.token {
            Some(token) if Instant::now() < token.renew_at => Ok(token.clone()),
            _ => {
                let token = self.issue_token(channel).await?;
                Ok(self.token.insert(token).clone())
            }
        }
    }

    async fn issue_token(&self, channel: &Channel) -> Result<Token, OpenError> {
        let requested_at = Instant::now();
        let issued = TokensClient::new(channel.clone())
            .issue_token(IssueTokenRequest {
                api_key: self.key.clone(),
                api_secret: self.secret.current().expose().to_owned(),
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
            renew_at: requested_at + lifetime.saturating_sub(RENEWAL_MARGIN.min(lifetime / 2)),
        })
    }
}
