//! The session with one core: receives notifications over successive streams and sends them. Sends
//! outlive their stream, and their outcomes are reported to any core.

use std::{pin::pin, sync::Arc};

use core_client::CoreAddr;
use proto::{Notification, Outcome, ReceiveRequest, ReceiveResponse, outcome::Failure};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::{Duration, Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tonic::Status;

use crate::{
    backoff::Backoff,
    connections::{Connection, Connections},
    in_flight::InFlight,
    readiness::OpenStreams,
    reporter::{Completed, Reporter, report_test},
    sender::Sender,
    stream_opener::{NotificationStream, OpenError, StreamOpener},
    test_send::send_sample,
};

/// How long core may take to end a stream that is half-closed, or that it closes itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of concurrent test sends. Core's own limit per stream is lower.
const MAX_TEST_SENDS: usize = 64;

/// One core, the stream from it, and the sends in flight.
pub(crate) struct CoreSession {
    core: StreamOpener,
    sender: Arc<Sender>,
    /// The maximum number of notifications in flight; changes with the number of cores.
    limit: watch::Receiver<usize>,
    in_flight: InFlight,
    /// The capacity granted on the current stream and not used yet.
    granted: usize,
    sends: JoinSet<()>,
    test_sends: JoinSet<()>,
    outcomes: mpsc::UnboundedSender<Completed>,
    reporter: AbortOnDropHandle<()>,
    token_rejected: Arc<Notify>,
    connections: Connections,
    backoff: Backoff,
    streams: OpenStreams,
    shutdown: CancellationToken,
}

/// Why a stream ended before the session did.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("core ended the stream with an error")]
    Status(#[from] Status),
    #[error("core ended the stream")]
    Ended,
    #[error("core did not end the stream within {END_TIMEOUT:?}")]
    EndTimeout,
    #[error("core sent {sent} notifications with a capacity of {capacity}")]
    CapacityExceeded { sent: usize, capacity: usize },
}

impl CoreSession {
    pub(crate) fn new(
        core: StreamOpener,
        sender: Arc<Sender>,
        limit: watch::Receiver<usize>,
        connections: Connections,
        streams: OpenStreams,
        shutdown: CancellationToken,
    ) -> Self {
        let in_flight = InFlight::counted_in(sender.metrics().in_flight.clone());
        let token_rejected = Arc::default();
        let (outcomes, completed) = mpsc::unbounded_channel();
        let reporter = Reporter {
            core: core.addr().clone(),
            connections: connections.clone(),
            in_flight: in_flight.clone(),
            token_rejected: Arc::clone(&token_rejected),
        };
        Self {
            core,
            sender,
            limit,
            in_flight,
            granted: 0,
            sends: JoinSet::new(),
            test_sends: JoinSet::new(),
            outcomes,
            reporter: AbortOnDropHandle::new(tokio::spawn(reporter.run(completed))),
            token_rejected,
            connections,
            backoff: Backoff::default(),
            streams,
            shutdown,
        }
    }

    /// Runs until shutdown; then completes what is in flight and ends once its outcomes are
    /// reported or their leases have expired. Returns its core.
    #[tracing::instrument(name = "core_session", skip_all, fields(core = %self.core.addr()))]
    pub(crate) async fn run(mut self) -> CoreAddr {
        while !self.shutdown.is_cancelled() {
            let Err(error) = self.run_streams().await else {
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
            self.shutdown.run_until_cancelled(sleep(wait)).await;
        }
        // The reporter ends when all senders of its channel are dropped.
        drop(self.outcomes);
        let _ = self.reporter.await;
        while self.test_sends.join_next().await.is_some() {}
        self.core.addr().clone()
    }

    /// Runs a stream, and those that replace it for a new token, until shutdown.
    async fn run_streams(&mut self) -> Result<(), StreamError> {
        self.granted = 0;
        self.granted = self.grantable();
        let shutdown = self.shutdown.clone();
        let opening = self.core.open(request(self.granted));
        let Some(stream) = shutdown.run_until_cancelled(opening).await else {
            return Ok(());
        };
        let mut stream = stream?;
        let _open = self.streams.add();
        loop {
            tracing::info!("stream from core is open");
            self.connections.insert(stream.connection.clone());
            let Some(next) = self.serve(stream).await? else {
                return Ok(());
            };
            tracing::info!("stream from core is replaced: its access token expires soon");
            self.granted = 0;
            stream = next;
        }
    }

    /// Receives until a stream with a new token is open, which it returns, or until shutdown. Then
    /// half-closes the stream and reads it to its end.
    async fn serve(
        &mut self,
        mut stream: NotificationStream,
    ) -> Result<Option<NotificationStream>, StreamError> {
        let mut replacement = pin!(self.core.replace_at(stream.renew_at));
        let in_flight = self.in_flight.clone();
        let shutdown = self.shutdown.clone();
        let token_rejected = Arc::clone(&self.token_rejected);
        let ended = loop {
            let grantable = self.grantable();
            tokio::select! {
                response = stream.responses.message() => {
                    let response = response?.ok_or(StreamError::Ended)?;
                    self.backoff.reset();
                    self.receive(response, &stream.connection)?;
                }
                permit = stream.requests.reserve(), if grantable > 0 => match permit {
                    Ok(permit) => {
                        permit.send(request(grantable));
                        self.granted += grantable;
                    }
                    // Core has closed the stream.
                    Err(_) => break Err(StreamError::Ended),
                },
                () = in_flight.ended() => {}
                Ok(()) = self.limit.changed() => {}
                () = shutdown.cancelled() => break Ok(None),
                // Core ends the stream too, but later.
                () = token_rejected.notified() => match self.core.reconnect().await {
                    Ok(connection) => self.connections.insert(connection),
                    Err(error) => tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the access token could not be renewed"
                    ),
                },
                next = &mut replacement => break Ok(Some(next)),
            }
        };
        let read = self.read_to_end(stream).await;
        let Ok(Some((core, next))) = ended else {
            read?;
            return ended.map(|_| None);
        };
        self.core = core;
        match read {
            Err(error @ StreamError::CapacityExceeded { .. }) => return Err(error),
            // What core had leased on this stream and not sent waits for the end of its lease.
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the replaced stream from core failed"
            ),
            Ok(()) => {}
        }
        Ok(Some(next))
    }

    /// Half-closes a stream and receives what core had leased on it before.
    async fn read_to_end(&mut self, stream: NotificationStream) -> Result<(), StreamError> {
        let NotificationStream {
            requests,
            mut responses,
            connection,
            ..
        } = stream;
        drop(requests);
        let reading = async {
            while let Some(response) = responses.message().await? {
                self.receive(response, &connection)?;
            }
            Ok(())
        };
        timeout(END_TIMEOUT, reading)
            .await
            .unwrap_or(Err(StreamError::EndTimeout))
    }

    /// Sends what core has leased or, while shutting down, returns it: each notification to a
    /// receiver that hangs would delay the shutdown.
    fn receive(
        &mut self,
        response: ReceiveResponse,
        connection: &Connection,
    ) -> Result<(), StreamError> {
        while self.sends.try_join_next().is_some() || self.test_sends.try_join_next().is_some() {}
        let sent = response.notifications.len();
        let capacity = self.granted;
        self.granted = capacity
            .checked_sub(sent)
            .ok_or(StreamError::CapacityExceeded { sent, capacity })?;
        let returns = self.shutdown.is_cancelled();
        if returns && sent > 0 {
            tracing::info!(count = sent, "notifications returned while shutting down");
        }
        for notification in response.notifications {
            self.start(notification, returns);
        }
        for test in response.tests {
            self.start_test(test, connection.clone());
        }
        Ok(())
    }

    fn start(&mut self, notification: Notification, returns: bool) {
        let lease = notification.lease.map(Duration::try_from);
        let lease_expires_at = lease
            .and_then(Result::ok)
            .and_then(|lease| Instant::now().checked_add(lease));
        let (sender, outcomes) = (Arc::clone(&self.sender), self.outcomes.clone());
        let guard = self.in_flight.add();
        self.sends.spawn(async move {
            let outcome = if returns {
                not_sent(notification)
            } else {
                sender.send(notification).await
            };
            // Fails only after the session was aborted.
            let _ = outcomes.send(Completed {
                outcome,
                lease_expires_at,
                guard,
            });
        });
    }

    /// Sends a sample and reports it to the core that sent it, where its caller waits.
    fn start_test(&mut self, test: Notification, connection: Connection) {
        if self.test_sends.len() >= MAX_TEST_SENDS {
            tracing::error!(test.name, "test send rejected: too many are running");
            return;
        }
        let sender = Arc::clone(&self.sender);
        let connections = self.connections.clone();
        let token_rejected = Arc::clone(&self.token_rejected);
        self.test_sends.spawn(async move {
            let outcome = send_sample(&sender, test).await;
            report_test(outcome, connection, &connections, &token_rejected).await;
        });
    }

    /// The capacity that is free and not granted.
    fn grantable(&self) -> usize {
        let used = self.in_flight.count() + self.granted;
        self.limit.borrow().saturating_sub(used)
    }
}

fn request(capacity: usize) -> ReceiveRequest {
    ReceiveRequest {
        capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
    }
}

fn not_sent(notification: Notification) -> Outcome {
    Outcome {
        name: notification.name,
        lease_token: notification.lease_token,
        failure: Failure::NotSent.into(),
        ..Outcome::default()
    }
}

#[cfg(test)]
mod tests;
