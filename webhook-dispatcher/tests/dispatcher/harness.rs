//! The roles: a core that does what the test says, receivers that answer in bytes, and the
//! dispatcher between them.

use std::{
    future::Future,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use proto::{
    AccessToken, IssueTokenRequest, ListPublicKeysRequest, ListPublicKeysResponse, Notification,
    Outcome, Recorded, StreamRequest, StreamResponse,
    notifications_server::{Notifications, NotificationsServer},
    outcome::Failure,
    tokens_server::{Tokens, TokensServer},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinHandle,
};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status, Streaming,
    transport::{Server, server::TcpIncoming},
};
use webhook_dispatcher::{ClientSecret, Config, WebhookDispatcher};

pub(crate) const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nthanks";

/// The result of something that must happen soon.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("this should have happened by now")
}

pub(crate) struct Dispatcher {
    shutdown: CancellationToken,
    run: JoinHandle<()>,
}

impl Dispatcher {
    pub(crate) fn start(config: &Config) -> Self {
        let shutdown = CancellationToken::new();
        let dispatcher = WebhookDispatcher::new(config).unwrap();
        let run = tokio::spawn(dispatcher.run(shutdown.clone()));
        Self { shutdown, run }
    }

    pub(crate) fn shut_down(&self) {
        self.shutdown.cancel();
    }

    /// Shuts down while core keeps to the contract: all is recorded, and it ends the stream once
    /// the dispatcher has half-closed it.
    pub(crate) async fn shut_down_with(self, mut stream: CoreStream) {
        self.shut_down();
        while stream.next_request().await.is_some() {}
        drop(stream);
        self.ended().await;
    }

    pub(crate) async fn ended(self) {
        soon(self.run).await.unwrap();
    }
}

/// A configuration for cores that may send to receivers on loopback.
pub(crate) fn config(cores: &[&FakeCore]) -> Config {
    Config {
        core_urls: cores.iter().map(|core| core.url.parse().unwrap()).collect(),
        client_key: Some("key".to_owned()),
        client_secret: Some(ClientSecret::from("secret".to_owned())),
        allow_http: true,
        allow_networks: vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
        ..Config::default()
    }
}

/// What comes of one attempt to send to a URL, without its duration.
pub(crate) async fn attempt(url: &str) -> Outcome {
    attempt_with(|_| {}, url).await
}

pub(crate) async fn attempt_with(configure: impl FnOnce(&mut Config), url: &str) -> Outcome {
    let mut core = FakeCore::start().await;
    let mut config = config(&[&core]);
    configure(&mut config);
    let dispatcher = Dispatcher::start(&config);
    let mut stream = core.stream().await;

    stream.send(vec![notification(1, url)]).await;
    let outcome = stream.next_outcome().await;
    stream.record(&outcome).await;

    dispatcher.shut_down_with(stream).await;
    Outcome {
        duration: None,
        ..outcome
    }
}

/// A deadline that a test can wait for.
pub(crate) fn briefly(config: &mut Config) {
    config.send_timeout = Duration::from_millis(300);
}

pub(crate) fn notification(number: u8, url: &str) -> Notification {
    Notification {
        name: format!("notifications/01932e5c-9f4a-7000-8000-0000000000{number:02x}"),
        lease_token: format!("lease-{number}"),
        url: url.to_owned(),
        secrets: vec![SECRET.to_owned()],
        event: "delivery.completed".to_owned(),
        object: "deliveries/1".to_owned(),
        attempt: 1,
        ..Notification::default()
    }
}

/// The outcome of the first notification.
pub(crate) fn failed(failure: Failure, status: Option<u32>) -> Outcome {
    Outcome {
        name: notification(1, "").name,
        lease_token: "lease-1".to_owned(),
        failure: failure.into(),
        status,
        ..Outcome::default()
    }
}

pub(crate) fn delivered(answer: &str) -> Outcome {
    Outcome {
        answer: answer.to_owned(),
        ..failed(Failure::Unspecified, Some(200))
    }
}

/// A core of which the test says what it sends. Its access tokens are `token-1`, `token-2`, …
pub(crate) struct FakeCore {
    pub url: String,
    gone: CancellationToken,
    streams: UnboundedReceiver<CoreStream>,
    token_requests: UnboundedReceiver<IssueTokenRequest>,
}

impl FakeCore {
    pub(crate) async fn start() -> Self {
        Self::start_refusing("").await
    }

    /// A core that does not take one of the tokens it issued.
    pub(crate) async fn start_refusing(token: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (streams_tx, streams) = mpsc::unbounded_channel();
        let (token_requests_tx, token_requests) = mpsc::unbounded_channel();
        let notifications = FakeNotifications {
            streams: streams_tx,
            refused: format!("Bearer {token}"),
        };
        let tokens = FakeTokens {
            requests: token_requests_tx,
            issued: AtomicUsize::new(0),
        };
        let gone = CancellationToken::new();
        tokio::spawn(
            Server::builder()
                .add_service(NotificationsServer::new(notifications))
                .add_service(TokensServer::new(tokens))
                .serve_with_incoming_shutdown(
                    TcpIncoming::from(listener).with_nodelay(Some(true)),
                    gone.clone().cancelled_owned(),
                ),
        );
        Self {
            url,
            gone,
            streams,
            token_requests,
        }
    }

    pub(crate) async fn stream(&mut self) -> CoreStream {
        soon(self.streams.recv()).await.unwrap()
    }

    /// Ends for good, as when it is told to: its streams break off, and nobody listens any more.
    pub(crate) async fn end(self, streams: impl IntoIterator<Item = CoreStream>) {
        self.gone.cancel();
        for stream in streams {
            stream.break_off().await;
        }
    }

    pub(crate) async fn token_request(&mut self) -> IssueTokenRequest {
        soon(self.token_requests.recv()).await.unwrap()
    }
}

/// A stream from core's side.
pub(crate) struct CoreStream {
    pub authorization: String,
    requests: Streaming<StreamRequest>,
    responses: mpsc::Sender<Result<StreamResponse, Status>>,
}

impl CoreStream {
    /// The next request; none after the dispatcher has half-closed.
    pub(crate) async fn next_request(&mut self) -> Option<StreamRequest> {
        soon(self.requests.message()).await.unwrap()
    }

    /// The next outcome, whatever credit comes before and with it.
    pub(crate) async fn next_outcome(&mut self) -> Outcome {
        loop {
            let request = self.next_request().await.expect("an outcome is owed");
            match request.outcomes.as_slice() {
                [] => {}
                [outcome] => return outcome.clone(),
                more => panic!("several outcomes: {more:?}"),
            }
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

    pub(crate) async fn record(&self, outcome: &Outcome) {
        let response = StreamResponse {
            recorded: vec![Recorded {
                name: outcome.name.clone(),
                lease_token: outcome.lease_token.clone(),
            }],
            ..StreamResponse::default()
        };
        self.responses.send(Ok(response)).await.unwrap();
    }

    pub(crate) async fn break_off(self) {
        let status = Status::unavailable("core is restarting");
        self.responses.send(Err(status)).await.unwrap();
    }
}

struct FakeNotifications {
    streams: UnboundedSender<CoreStream>,
    refused: String,
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
        if authorization == self.refused {
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
            .map_err(|_| Status::aborted("the test is over"))?;
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }
}

struct FakeTokens {
    requests: UnboundedSender<IssueTokenRequest>,
    issued: AtomicUsize,
}

#[tonic::async_trait]
impl Tokens for FakeTokens {
    async fn issue_token(
        &self,
        request: Request<IssueTokenRequest>,
    ) -> Result<Response<AccessToken>, Status> {
        self.requests
            .send(request.into_inner())
            .map_err(|_| Status::aborted("the test is over"))?;
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Response::new(AccessToken {
            access_token: format!("token-{number}"),
            expires_in: 3600,
            scopes: vec!["notifications".to_owned()],
        }))
    }

    async fn list_public_keys(
        &self,
        _: Request<ListPublicKeysRequest>,
    ) -> Result<Response<ListPublicKeysResponse>, Status> {
        Err(Status::unimplemented("not asked for"))
    }
}

/// A request as it came over the wire.
#[derive(Debug)]
pub(crate) struct Received {
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header, its name spelled exactly so.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A connection from the receiver's side.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    /// The next request; none if the dispatcher closes before it.
    pub(crate) async fn read_request(&mut self) -> Option<Received> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let mut received = Received {
            head,
            body: Vec::new(),
        };
        let length = received.header("Content-Length")?.parse().ok()?;
        received.body.resize(length, 0);
        self.0.read_exact(&mut received.body).await.ok()?;
        Some(received)
    }

    /// Writes; false once the dispatcher is gone.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> bool {
        self.0.get_mut().write_all(bytes).await.is_ok()
    }

    /// Waits until the dispatcher closes.
    pub(crate) async fn closed(&mut self) {
        // A reset is an end too.
        let _ = tokio::io::copy(&mut self.0, &mut tokio::io::sink()).await;
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        self.0.get_ref().set_zero_linger().unwrap();
    }
}

/// Starts a receiver that serves each connection as told and gives its address.
pub(crate) async fn receiver<F, Fut>(serve: F) -> SocketAddr
where
    F: Fn(usize, Connection) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut number = 0;
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).unwrap();
            tokio::spawn(serve(number, Connection(BufReader::new(stream))));
            number += 1;
        }
    });
    addr
}

/// Starts a receiver that gives every request the same answer.
pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> (String, UnboundedReceiver<Received>) {
    let answer = answer.into();
    let (received_tx, received) = mpsc::unbounded_channel();
    let addr = receiver(move |_, mut connection| {
        let answer = answer.clone();
        let received = received_tx.clone();
        async move {
            while let Some(request) = connection.read_request().await {
                // The test may have ended without looking.
                let _ = received.send(request);
                connection.write(&answer).await;
            }
        }
    })
    .await;
    (format!("http://{addr}/hook"), received)
}

/// A listener that nobody should call.
pub(crate) struct Canary(TcpListener);

impl Canary {
    pub(crate) async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// Whether nobody has called: then the first in the backlog is our own call.
    pub(crate) async fn untouched(self) -> bool {
        let own = TcpStream::connect(self.addr()).await.unwrap();
        let (_, first) = self.0.accept().await.unwrap();
        first == own.local_addr().unwrap()
    }
}
