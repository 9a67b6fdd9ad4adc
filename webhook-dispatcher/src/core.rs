//! One core as its client sees it: where it is, the access token, and the stream of
//! notifications.

use std::time::Duration;

use core_client::{ConnectError, CoreAddr, Cores};
use proto::{
    IssueTokenRequest, StreamRequest, StreamResponse, notifications_client::NotificationsClient,
    tokens_client::TokensClient,
};
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Code, Request, Status, Streaming,
    metadata::{Ascii, MetadataValue, errors::InvalidMetadataValue},
    transport::Channel,
};

use crate::ClientSecret;

const SCOPE: &str = "notifications";
/// How long it may take to connect, get a token and open the stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long before its end a token is no longer used for a new stream.
const RENEWAL_MARGIN: Duration = Duration::from_mins(1);
/// Room for a claim as large as the credit of any sensible configuration.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// A core and the access token for it.
pub(crate) struct Core {
    cores: Cores,
    addr: CoreAddr,
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
    #[error(transparent)]
    Unreachable(#[from] ConnectError),
    #[error("core issues no access token")]
    Token(#[source] Status),
    #[error("core issued an access token that is not one")]
    NotAToken(#[from] InvalidMetadataValue),
    #[error("core opens no stream")]
    Stream(#[source] Status),
    #[error("core did not open a stream within {OPEN_TIMEOUT:?}")]
    Timeout,
}

impl Core {
    pub(crate) fn new(cores: Cores, addr: CoreAddr, key: String, secret: ClientSecret) -> Self {
        Self {
            cores,
            addr,
            key,
            secret,
            token: None,
        }
    }

    /// Where it is, for logs.
    pub(crate) fn addr(&self) -> &CoreAddr {
        &self.addr
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
        let channel = self.cores.connect(&self.addr).await?;
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
