//! A scripted core.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use proto::{
    AccessToken, Ack, IssueTokenRequest, ListPublicKeysRequest, ListPublicKeysResponse,
    Notification, Outcome, StreamRequest, StreamResponse,
    notifications_server::{Notifications, NotificationsServer},
    tokens_server::{Tokens, TokensServer},
};
use tokio::{
    net::TcpListener,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};

use super::with_timeout;

/// The lifetime of a token, in seconds.
const HOUR: u32 = 3600;

/// A core whose streams the test controls. Its access tokens are `token-1`, `token-2`, …
pub(crate) struct FakeCore {
    pub url: String,
    stopped: CancellationToken,
    streams: UnboundedReceiver<CoreStream>,
    token_requests: UnboundedReceiver<IssueTokenRequest>,
    /// How many of the next token requests fail.
    pub token_failures: Arc<AtomicUsize>,
}

impl FakeCore {
    pub(crate) async fn start() -> Self {
        Self::start_with("", HOUR).await
    }

    /// A core whose first token has a lifetime in seconds.
    pub(crate) async fn start_with_lifetime(lifetime: u32) -> Self {
        Self::start_with("", lifetime).await
    }

    /// A core that rejects one of the tokens it issued.
    pub(crate) async fn start_rejecting(token: &'static str) -> Self {
        Self::start_with(token, HOUR).await
    }

    async fn start_with(token: &'static str, lifetime: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (streams_tx, streams) = mpsc::unbounded_channel();
        let (token_requests_tx, token_requests) = mpsc::unbounded_channel();
        let notifications = FakeNotifications {
            streams: streams_tx,
            rejected: format!("Bearer {token}"),
        };
        let token_failures = Arc::default();
        let tokens = FakeTokens {
            requests: token_requests_tx,
            issued: AtomicUsize::new(0),
            lifetime,
            failures: Arc::clone(&token_failures),
        };
        let stopped = CancellationToken::new();
        tokio::spawn(
            Server::builder()
                .add_service(NotificationsServer::new(notifications))
                .add_service(TokensServer::new(tokens))
                .serve_with_incoming_shutdown(
                    TcpIncoming::from(listener).with_nodelay(Some(true)),
                    stopped.clone().cancelled_owned(),
                ),
        );
        Self {
            url,
            stopped,
            streams,
            token_requests,
            token_failures,
        }
    }

    pub(crate) async fn stream(&mut self) -> CoreStream {
        with_timeout(self.streams.recv()).await.unwrap()
    }

    /// Stops for good: its streams fail, and its listener is closed.
    pub(crate) async fn stop(self, streams: impl IntoIterator<Item = CoreStream>) {
        self.stopped.cancel();
        for stream in streams {
            stream.fail().await;
        }
    }

    pub(crate) async fn token_request(&mut self) -> IssueTokenRequest {
        with_timeout(self.token_requests.recv()).await.unwrap()
    }
}

/// A stream from core's side.
pub(crate) struct CoreStream {
    pub authorization: String,
    requests: Streaming<StreamRequest>,
    responses: mpsc::Sender<Result<StreamResponse, Status>>,
}

impl CoreStream {
    /// The next request; `None` after the dispatcher has half-closed the stream.
    pub(crate) async fn next_request(&mut self) -> Option<StreamRequest> {
        with_timeout(self.requests.message()).await.unwrap()
    }

    /// The requests up to the one that a condition holds for; fails if it takes longer than 20 s.
    pub(crate) async fn requests_until(
        &mut self,
        is_last: impl Fn(&StreamRequest) -> bool,
    ) -> Vec<StreamRequest> {
        with_timeout(async {
            let mut requests = Vec::new();
            loop {
                let request = self.requests.message().await.unwrap();
                let request = request.expect("the dispatcher sends another request");
                let is_last = is_last(&request);
                requests.push(request);
                if is_last {
                    return requests;
                }
            }
        })
        .await
    }

    /// The requests until the dispatcher half-closes the stream, within 20 s.
    pub(crate) async fn remaining_requests(&mut self) -> Vec<StreamRequest> {
        with_timeout(async {
            let mut requests = Vec::new();
            while let Some(request) = self.requests.message().await.unwrap() {
                requests.push(request);
            }
            requests
        })
        .await
    }

    /// The next outcome, ignoring credit.
    pub(crate) async fn next_outcome(&mut self) -> Outcome {
        let requests = self
            .requests_until(|request| !request.outcomes.is_empty())
            .await;
        match requests.last().unwrap().outcomes.as_slice() {
            [outcome] => outcome.clone(),
            several => panic!("several outcomes: {several:?}"),
        }
    }

    pub(crate) async fn send(&self, notifications: Vec<Notification>) {
        let response = StreamResponse {
            notifications,
            ..StreamResponse::default()
        };
        self.responses.send(Ok(response)).await.unwrap();
    }

    pub(crate) async fn send_test(&self, test: Notification) {
        let response = StreamResponse {
            tests: vec![test],
            ..StreamResponse::default()
        };
        self.responses.send(Ok(response)).await.unwrap();
    }

    pub(crate) async fn acknowledge(&self, outcome: &Outcome) {
        let response = StreamResponse {
            acks: vec![Ack {
                name: outcome.name.clone(),
                lease_token: outcome.lease_token.clone(),
            }],
            ..StreamResponse::default()
        };
        self.responses.send(Ok(response)).await.unwrap();
    }

    pub(crate) async fn fail(self) {
        let status = Status::unavailable("core is restarting");
        self.responses.send(Err(status)).await.unwrap();
    }
}

struct FakeNotifications {
    streams: UnboundedSender<CoreStream>,
    rejected: String,
}

#[tonic::async_trait]
impl Notifications for FakeNotifications {
    type StreamStream = ReceiverStream<Result<StreamResponse, Status>>;

    async fn stream(
        &self,
        request: Request<Streaming<StreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let authorization = request.metadata().get("authorization").unwrap();
        let authorization = authorization.to_str().unwrap().to_owned();
        if authorization == self.rejected {
            return Err(Status::unauthenticated("expired"));
        }
        let (responses, outgoing) = mpsc::channel(8);
        let stream = CoreStream {
            authorization,
            requests: request.into_inner(),
            responses,
        };
        self.streams
            .send(stream)
            .map_err(|_| Status::aborted("the test has ended"))?;
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }
}

struct FakeTokens {
    requests: UnboundedSender<IssueTokenRequest>,
    issued: AtomicUsize,
    /// Of the first token, in seconds.
    lifetime: u32,
    failures: Arc<AtomicUsize>,
}

#[tonic::async_trait]
impl Tokens for FakeTokens {
    async fn issue_token(
        &self,
        request: Request<IssueTokenRequest>,
    ) -> Result<Response<AccessToken>, Status> {
        self.requests
            .send(request.into_inner())
            .map_err(|_| Status::aborted("the test has ended"))?;
        let failures = &self.failures;
        let failed = failures.try_update(Ordering::Relaxed, Ordering::Relaxed, |failures| {
            failures.checked_sub(1)
        });
        if failed.is_ok() {
            return Err(Status::unavailable("core is restarting"));
        }
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Response::new(AccessToken {
            access_token: format!("token-{number}"),
            expires_in: if number == 1 { self.lifetime } else { HOUR },
            scopes: vec!["notifications".to_owned()],
        }))
    }

    async fn list_public_keys(
        &self,
        _: Request<ListPublicKeysRequest>,
    ) -> Result<Response<ListPublicKeysResponse>, Status> {
        Err(Status::unimplemented("not used in tests"))
    }
}
