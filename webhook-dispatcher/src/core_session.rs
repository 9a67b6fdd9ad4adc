//! The session with one core: receives, sends and reports over successive streams. Sends outlive
//! their stream, and their outcomes are reported to any core with an open stream.

use std::{pin::pin, sync::Arc};

use proto::{Notification, StreamRequest, StreamResponse};
use tokio::{
    sync::watch,
    time::{Duration, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::{
    backoff::Backoff,
    in_flight::InFlight,
    readiness::OpenStreams,
    stream_opener::{NotificationStream, OpenError, StreamOpener},
    stream_state::CreditExceeded,
    test_send::TestSends,
};

/// How long core may take to end a drained stream.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How long core may take to acknowledge outcomes on a draining stream; then they are handed over
/// to another session.
const ACK_TIMEOUT: Duration = Duration::from_secs(5);

/// One core, the stream with it, and the sends in flight.
pub(crate) struct CoreSession {
    core: StreamOpener,
    in_flight: InFlight,
    /// The maximum number of notifications in flight; changes with the number of cores.
    limit: watch::Receiver<usize>,
    backoff: Backoff,
    streams: OpenStreams,
    shutdown: Shutdown,
}

/// The shutdown signals of a session.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown {
    /// Cancelled when this session ends; a child of `dispatcher`.
    pub session: CancellationToken,
    /// Cancelled when the dispatcher shuts down.
    pub dispatcher: CancellationToken,
}

/// How far a stream was served; the other direction is still open.
enum Served {
    UntilDrained(Streaming<StreamResponse>),
    /// With the stream that replaces it.
    UntilRenewal(Streaming<StreamResponse>, Box<NotificationStream>),
}

/// Why a stream failed.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("core ended the stream with an error")]
    Status(#[from] Status),
    #[error("core ended the stream")]
    Ended,
    #[error("core acknowledged nothing within {ACK_TIMEOUT:?}")]
    AckTimeout,
    #[error(transparent)]
    CreditExceeded(#[from] CreditExceeded),
}

impl CoreSession {
    pub(crate) fn new(
        core: StreamOpener,
        in_flight: InFlight,
        limit: watch::Receiver<usize>,
        streams: OpenStreams,
        shutdown: Shutdown,
    ) -> Self {
        Self {
            core,
            in_flight,
            limit,
            backoff: Backoff::default(),
            streams,
            shutdown,
        }
    }

    /// Runs until shutdown. If only this core was removed, ends once the session's own sends have
    /// completed; if the dispatcher shuts down, once cores have acknowledged the outcomes of all
    /// sessions.
    #[tracing::instrument(name = "core_session", skip_all, fields(core = %self.core.addr()))]
    pub(crate) async fn run(mut self) {
        while self.wait_until_stream_needed().await {
            let result = self.run_stream().await;
            self.in_flight.hand_over();
            let Err(error) = result else {
                continue;
            };
            if let StreamError::Status(status) = &error {
                self.core.discard_rejected_token(status);
            }
            let wait = self.backoff.next();
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                ?wait,
                "stream from core failed, retrying"
            );
            self.wait_before_retry(wait).await;
        }
    }

    /// Waits until a stream is needed. Returns false if the session is finished instead.
    async fn wait_until_stream_needed(&mut self) -> bool {
        loop {
            self.in_flight.hand_over();
            if !self.is_draining() {
                return true;
            }
            let is_dispatcher_draining = self.shutdown.dispatcher.is_cancelled();
            let is_finished = if is_dispatcher_draining {
                if self.in_flight.has_orphaned() {
                    return true;
                }
                self.in_flight.all_drained()
            } else {
                // Other sessions have streams for orphaned outcomes.
                self.in_flight.is_drained()
            };
            if is_finished {
                return false;
            }
            tokio::select! {
                () = self.in_flight.changed() => {}
                () = self.shutdown.dispatcher.cancelled(), if !is_dispatcher_draining => {}
            }
        }
    }

    /// Waits before the next stream, unless none is needed any more.
    async fn wait_before_retry(&mut self, wait: Duration) {
        let mut elapsed = pin!(sleep(wait));
        loop {
            let is_draining = self.is_draining();
            if is_draining && !self.in_flight.has_orphaned() {
                return;
            }
            tokio::select! {
                () = &mut elapsed => return,
                () = self.in_flight.changed() => self.in_flight.hand_over(),
                () = self.shutdown.session.cancelled(), if !is_draining => {}
            }
        }
    }

    /// Runs a stream, and those that replace it for a new token, until the last is drained or none
    /// is needed.
    async fn run_stream(&mut self) -> Result<(), StreamError> {
        let Some(mut stream) = self.open().await? else {
            return Ok(());
        };
        let _open = self.streams.add();
        loop {
            tracing::info!("stream from core is open");
            match self.serve_stream(stream).await? {
                Served::UntilDrained(responses) => return self.await_acks(responses).await,
                Served::UntilRenewal(responses, next) => {
                    match self.read_to_end(responses).await {
                        Ok(()) => {}
                        Err(error @ StreamError::CreditExceeded(_)) => return Err(error),
                        // What core had leased to it and not sent waits for the end of its lease.
                        Err(error) => tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "the replaced stream from core failed"
                        ),
                    }
                    self.in_flight.hand_over();
                    self.in_flight.stream_state.begin_stream();
                    stream = *next;
                }
            }
        }
    }

    /// Opens a stream. Meanwhile outcomes of earlier sends are handed over to other sessions.
    async fn open(&mut self) -> Result<Option<NotificationStream>, OpenError> {
        let accepting = !self.is_draining();
        self.in_flight.stream_state.begin_stream();
        self.in_flight.stream_state.set_limit(*self.limit.borrow());
        let first = self.in_flight.stream_state.next_request(accepting);
        let mut opening = pin!(self.core.open(first));
        loop {
            tokio::select! {
                stream = &mut opening => return stream.map(Some),
                () = self.in_flight.changed() => self.in_flight.hand_over(),
                () = self.shutdown.session.cancelled(), if accepting => return Ok(None),
            }
            if !accepting && !self.in_flight.has_orphaned() {
                return Ok(None);
            }
        }
    }

    /// Receives, sends and reports until a stream with a new token is open, or until shutdown; then
    /// reports all outcomes. Half-closes the stream.
    async fn serve_stream(
        &mut self,
        mut stream: NotificationStream,
    ) -> Result<Served, StreamError> {
        let mut tests = TestSends::new(Arc::clone(self.in_flight.sender()));
        let mut replacement = pin!(self.core.replace_at(stream.renew_at));
        loop {
            self.in_flight.collect_completed();
            self.in_flight.take_orphaned();
            let stream_state = &mut self.in_flight.stream_state;
            stream_state.set_limit(*self.limit.borrow_and_update());
            let accepting = !self.is_draining();
            if !accepting && self.in_flight.stream_state.all_reported() && tests.all_reported() {
                let draining = StreamRequest {
                    draining: true,
                    ..StreamRequest::default()
                };
                // Fails if core has closed the stream: then it needs no signal.
                let _ = stream.requests.send(draining).await;
                return Ok(Served::UntilDrained(stream.responses));
            }

            let has_request =
                self.in_flight.stream_state.has_request(accepting) || tests.has_outcomes();
            tokio::select! {
                response = stream.responses.message() => {
                    self.receive(response?.ok_or(StreamError::Ended)?, accepting, &mut tests)?;
                }
                Some(()) = tests.next_completed() => {}
                () = self.in_flight.changed() => {}
                permit = stream.requests.reserve(), if has_request => match permit {
                    Ok(permit) => permit.send(StreamRequest {
                        test_outcomes: tests.take_outcomes(),
                        ..self.in_flight.stream_state.next_request(accepting)
                    }),
                    Err(_) => return Err(self.read_closed(stream.responses, &mut tests).await),
                },
                Ok(()) = self.limit.changed() => {}
                () = self.shutdown.session.cancelled(), if accepting => {}
                // A test is reported on its own stream only. From now on core has the replacement
                // for tests; one that it sends on this stream before it reads the half-close is
                // abandoned, and core fails its caller at once.
                (core, next) = &mut replacement, if accepting && tests.all_reported() => {
                    self.core = core;
                    return Ok(Served::UntilRenewal(stream.responses, Box::new(next)));
                }
            }
        }
    }

    /// Sends what core has leased, or declines it while draining, and takes its acknowledgements and
    /// tests.
    fn receive(
        &mut self,
        response: StreamResponse,
        accepting: bool,
        tests: &mut TestSends,
    ) -> Result<(), CreditExceeded> {
        self.backoff.reset();
        if accepting {
            self.in_flight.start(response.notifications)?;
        } else {
            self.decline(&response.notifications)?;
        }
        self.in_flight.acknowledge(response.acks);
        for test in response.tests {
            tests.start(test);
        }
        Ok(())
    }

    /// Reads a stream that core has closed to its end, with what core has leased on it before.
    /// Returns why core closed it.
    async fn read_closed(
        &mut self,
        mut responses: Streaming<StreamResponse>,
        tests: &mut TestSends,
    ) -> StreamError {
        let accepting = !self.is_draining();
        loop {
            match timeout(END_TIMEOUT, responses.message()).await {
                Ok(Ok(Some(mut response))) => {
                    // Their callers have been told that no dispatcher is connected.
                    response.tests.clear();
                    if let Err(error) = self.receive(response, accepting, tests) {
                        return error.into();
                    }
                }
                Ok(Ok(None)) | Err(_) => return StreamError::Ended,
                Ok(Err(status)) => return status.into(),
            }
        }
    }

    /// Reads a half-closed stream to its end, and sends what core has leased on it: the outcomes
    /// are reported on the next stream.
    async fn read_to_end(
        &mut self,
        mut responses: Streaming<StreamResponse>,
    ) -> Result<(), StreamError> {
        let reading = async {
            while let Some(response) = responses.message().await? {
                self.in_flight.start(response.notifications)?;
                self.in_flight.acknowledge(response.acks);
            }
            tracing::info!("stream from core is replaced: its access token expires soon");
            Ok(())
        };
        timeout(ACK_TIMEOUT, reading)
            .await
            .unwrap_or(Err(StreamError::AckTimeout))
    }

    /// Reads acknowledgements from a half-closed stream to its end.
    async fn await_acks(
        &mut self,
        mut responses: Streaming<StreamResponse>,
    ) -> Result<(), StreamError> {
        loop {
            let is_drained = self.in_flight.is_drained();
            let limit = if is_drained { END_TIMEOUT } else { ACK_TIMEOUT };
            match timeout(limit, responses.message()).await {
                Ok(Ok(Some(response))) => {
                    self.decline(&response.notifications)?;
                    self.in_flight.acknowledge(response.acks);
                }
                _ if is_drained => return Ok(()),
                Ok(Ok(None)) => return Err(StreamError::Ended),
                Ok(Err(status)) => return Err(status.into()),
                Err(_) => return Err(StreamError::AckTimeout),
            }
        }
    }

    /// Declines notifications received while draining: a receiver that hangs would delay the
    /// shutdown each time. Core claims them for another dispatcher once this one has drained.
    fn decline(&mut self, notifications: &[Notification]) -> Result<(), CreditExceeded> {
        if !notifications.is_empty() {
            let count = notifications.len();
            tracing::info!(count, "notifications declined while draining");
        }
        self.in_flight.stream_state.decline(notifications)
    }

    fn is_draining(&self) -> bool {
        self.shutdown.session.is_cancelled()
    }
}

#[cfg(test)]
mod tests;
