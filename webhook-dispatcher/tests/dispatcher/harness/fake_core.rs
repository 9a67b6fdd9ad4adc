//! A scripted core.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use proto::{
    AccessToken, IssueTokenRequest, ListPublicKeysRequest, ListPublicKeysResponse, Notification,
    Outcome, ReceiveRequest, ReceiveResponse, ReportOutcomesRequest, ReportOutcomesResponse,
    notifications_server::{Notifications, NotificationsServer},
    tokens_server::{Tokens, TokensServer},
};
use tokio::{
    net::TcpListener,
    sync::{
        Mutex,
        mpsc::{self, UnboundedReceiver, UnboundedSender},
        oneshot,
    },
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
    pub reports: Reports,
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

    /// A core at an address of loopback.
    pub(crate) async fn start_at(addr: SocketAddr) -> Self {
        Self::start_on(TcpListener::bind(addr).await.unwrap(), "", HOUR)
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
        Self::start_on(listener, token, lifetime)
    }

    fn start_on(listener: TcpListener, token: &'static str, lifetime: u32) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (streams_tx, streams) = mpsc::unbounded_channel();
        let (token_requests_tx, token_requests) = mpsc::unbounded_channel();
        let (reports_tx, reports) = mpsc::unbounded_channel();
        let reports = Reports {
            incoming: Arc::new(Mutex::new(reports)),
            unanswered: Vec::new(),
            unread: VecDeque::new(),
        };
        let notifications = FakeNotifications {
            streams: streams_tx,
            reports: reports.clone(),
            received: reports_tx,
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
            reports,
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

    /// Whether a token request waits to be read.
    pub(crate) fn has_token_request(&self) -> bool {
        !self.token_requests.is_empty()
    }
}

/// A stream from core's side.
pub(crate) struct CoreStream {
    pub authorization: String,
    reports: Reports,
    requests: Streaming<ReceiveRequest>,
    responses: mpsc::Sender<Result<ReceiveResponse, Status>>,
}

impl CoreStream {
    /// The next request; `None` after the dispatcher has half-closed the stream.
    pub(crate) async fn next_request(&mut self) -> Option<ReceiveRequest> {
        with_timeout(self.requests.message()).await.unwrap()
    }

    /// The requests until the dispatcher half-closes the stream, within 20 s.
    pub(crate) async fn remaining_requests(&mut self) -> Vec<ReceiveRequest> {
        with_timeout(async {
            let mut requests = Vec::new();
            while let Some(request) = self.requests.message().await.unwrap() {
                requests.push(request);
            }
            requests
        })
        .await
    }

    /// See [`Reports::next`].
    pub(crate) async fn next_report(&mut self) -> Vec<Outcome> {
        self.reports.next().await
    }

    /// See [`Reports::next_outcome`].
    pub(crate) async fn next_outcome(&mut self) -> Outcome {
        self.reports.next_outcome().await
    }

    /// See [`Reports::acknowledge`].
    pub(crate) fn acknowledge(&mut self, outcome: &Outcome) {
        self.reports.acknowledge(outcome);
    }

    pub(crate) async fn send(&self, notifications: Vec<Notification>) {
        let response = ReceiveResponse { notifications };
        self.responses.send(Ok(response)).await.unwrap();
    }

    pub(crate) async fn fail(self) {
        let status = Status::unavailable("core is restarting");
        self.responses.send(Err(status)).await.unwrap();
    }
}

/// Outcomes, and what answers their report.
type Report = (Vec<Outcome>, oneshot::Sender<()>);

/// The reports to one core. Those that are not answered fail when this is dropped.
#[derive(Debug)]
pub(crate) struct Reports {
    incoming: Arc<Mutex<UnboundedReceiver<Report>>>,
    unanswered: Vec<Report>,
    /// Of the last report, for [`Reports::next_outcome`].
    unread: VecDeque<Outcome>,
}

impl Clone for Reports {
    /// Without the unanswered ones.
    fn clone(&self) -> Self {
        Self {
            incoming: Arc::clone(&self.incoming),
            unanswered: Vec::new(),
            unread: VecDeque::new(),
        }
    }
}

impl Reports {
    /// The outcomes of the next report.
    pub(crate) async fn next(&mut self) -> Vec<Outcome> {
        let next = with_timeout(async { self.incoming.lock().await.recv().await }).await;
        let (outcomes, answer) = next.unwrap();
        self.unanswered.push((outcomes.clone(), answer));
        outcomes
    }

    /// The next outcome, of the same report as the last or of the next.
    pub(crate) async fn next_outcome(&mut self) -> Outcome {
        if self.unread.is_empty() {
            let outcomes = self.next().await;
            self.unread.extend(outcomes);
        }
        self.unread.pop_front().unwrap()
    }

    /// Answers the reports of an outcome.
    pub(crate) fn acknowledge(&mut self, outcome: &Outcome) {
        for (_, answer) in self
            .unanswered
            .extract_if(.., |(outcomes, _)| outcomes.contains(outcome))
        {
            let _ = answer.send(());
        }
    }

    pub(crate) fn fail_unanswered(&mut self) {
        self.unanswered.clear();
    }

    /// Whether no report waits to be read.
    pub(crate) async fn is_empty(&self) -> bool {
        self.incoming.lock().await.is_empty()
    }
}

struct FakeNotifications {
    streams: UnboundedSender<CoreStream>,
    reports: Reports,
    received: UnboundedSender<Report>,
    rejected: String,
}

#[tonic::async_trait]
impl Notifications for FakeNotifications {
    type ReceiveStream = ReceiverStream<Result<ReceiveResponse, Status>>;

    async fn receive(
        &self,
        request: Request<Streaming<ReceiveRequest>>,
    ) -> Result<Response<Self::ReceiveStream>, Status> {
        let authorization = request.metadata().get("authorization").unwrap();
        let authorization = authorization.to_str().unwrap().to_owned();
        if authorization == self.rejected {
            return Err(Status::unauthenticated("expired"));
        }
        let (responses, outgoing) = mpsc::channel(8);
        let stream = CoreStream {
            authorization,
            reports: self.reports.clone(),
            requests: request.into_inner(),
            responses,
        };
        self.streams
            .send(stream)
            .map_err(|_| Status::aborted("the test has ended"))?;
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }

    async fn report_outcomes(
        &self,
        request: Request<ReportOutcomesRequest>,
    ) -> Result<Response<ReportOutcomesResponse>, Status> {
        let ended = || Status::unavailable("the test has ended");
        let (answer, answered) = oneshot::channel();
        self.received
            .send((request.into_inner().outcomes, answer))
            .map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?;
        Ok(Response::new(ReportOutcomesResponse::default()))
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
