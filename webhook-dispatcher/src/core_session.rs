//! The session with one core: receives notifications over successive streams and sends them. Sends
//! outlive their stream, and their outcomes are reported to any core.

use std::{pin::pin, sync::Arc};

use core_client::CoreAddr;
use proto::{Notification, ReceiveRequest, ReceiveResponse};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::{Duration, Instant, sleep, timeout},
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tonic::Status;

use crate::{
    backoff::Backoff,
    connections::Connections,
    in_flight::InFlight,
    reporter::{Completed, Reporter},
    sender::Sender,
    stream_opener::{NotificationStream, OpenError, StreamOpener},
};

/// How long core may take to end a stream that is half-closed, or that it closes itself.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// What the sessions with all cores share.
#[derive(Clone)]
pub(crate) struct SharedState {
    pub sender: Arc<Sender>,
    /// The maximum number of notifications in flight from each core; changes with their number.
    pub limit: watch::Receiver<usize>,
    /// To report outcomes to any core.
    pub connections: Connections,
    pub streams: TaskTracker,
}

/// One core, the stream from it, and the sends in flight.
pub(crate) struct CoreSession {
    opener: StreamOpener,
    shared: SharedState,
    in_flight: InFlight,
    /// The capacity granted on the current stream and not used yet.
    granted: usize,
    sends: JoinSet<()>,
    outcomes: mpsc::UnboundedSender<Completed>,
    reporter: Arc<Reporter>,
    reporting: AbortOnDropHandle<()>,
    backoff: Backoff,
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
        opener: StreamOpener,
        shared: SharedState,
        shutdown: CancellationToken,
    ) -> Self {
        let in_flight = InFlight::counted_in(shared.sender.metrics().in_flight.clone());
        let (outcomes, completed) = mpsc::unbounded_channel();
        let reporter = Arc::new(Reporter {
            core: opener.addr().clone(),
            connections: shared.connections.clone(),
            in_flight: in_flight.clone(),
            token_rejected: Notify::new(),
            shutdown: shutdown.clone(),
        });
        let reporting = tokio::spawn(Arc::clone(&reporter).run(completed));
        Self {
            opener,
            shared,
            in_flight,
            granted: 0,
            sends: JoinSet::new(),
            outcomes,
            reporter,
            reporting: AbortOnDropHandle::new(reporting),
            backoff: Backoff::default(),
            shutdown,
        }
    }

    /// Runs until shutdown; then completes what is in flight and ends once its outcomes are
    /// reported or their leases have expired. Returns its core.
    #[tracing::instrument(name = "core_session", skip_all, fields(core = %self.opener.addr()))]
    pub(crate) async fn run(mut self) -> CoreAddr {
        while !self.shutdown.is_cancelled() {
            let Err(error) = self.run_stream().await else {
                continue;
            };
            if let StreamError::Status(status) = &error {
                self.opener.discard_rejected_token(status);
            }
            let wait = self.backoff.next();
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                ?wait,
                "stream from core failed, retrying"
            );
            self.shutdown.run_until_cancelled(sleep(wait)).await;
        }
        // The reporter ends when all senders of its channel are dropped: each send has one.
        drop(self.outcomes);
        let _ = self.reporting.await;
        self.opener.addr().clone()
    }

    /// Opens a stream and receives until its access token is renewed or until shutdown. Then
    /// half-closes it and receives what core had leased on it before.
    async fn run_stream(&mut self) -> Result<(), StreamError> {
        self.granted = 0;
        self.granted = self.grantable();
        let shutdown = self.shutdown.clone();
        let opening = self.opener.open(request(self.granted));
        let Some(stream) = shutdown.run_until_cancelled(opening).await else {
            return Ok(());
        };
        let NotificationStream {
            requests,
            mut responses,
            connection,
        } = stream?;
        let _open = self.shared.streams.token();
        tracing::info!("stream from core is open");
        let mut renewed = pin!(self.opener.renewed_at(connection.token.renew_at));
        self.shared.connections.insert(connection);
        let (in_flight, reporter) = (self.in_flight.clone(), Arc::clone(&self.reporter));
        let ended = loop {
            let grantable = self.grantable();
            tokio::select! {
                response = responses.message() => {
                    let response = response?.ok_or(StreamError::Ended)?;
                    self.backoff.reset();
                    self.receive(response)?;
                }
                permit = requests.reserve(), if grantable > 0 => match permit {
                    Ok(permit) => {
                        permit.send(request(grantable));
                        self.granted += grantable;
                    }
                    // Core has closed the stream.
                    Err(_) => break Err(StreamError::Ended),
                },
                () = in_flight.ended() => {}
                Ok(()) = self.shared.limit.changed() => {}
                () = shutdown.cancelled() => break Ok(()),
                // Core ends the stream too, but later.
                () = reporter.token_rejected.notified() => {
                    self.opener.discard_token();
                    break Ok(());
                }
                opener = &mut renewed => {
                    tracing::info!("stream from core is reopened: its access token expires soon");
                    self.opener = opener;
                    break Ok(());
                }
            }
        };
        drop(requests);
        let reading = async {
            while let Some(response) = responses.message().await? {
                self.receive(response)?;
            }
            Ok(())
        };
        timeout(END_TIMEOUT, reading)
            .await
            .unwrap_or(Err(StreamError::EndTimeout))?;
        ended
    }

    fn receive(&mut self, response: ReceiveResponse) -> Result<(), StreamError> {
        while self.sends.try_join_next().is_some() {}
        let notifications = response.notifications;
        let sent = notifications.iter().filter(|sent| !sent.test).count();
        let capacity = self.granted;
        self.granted = capacity
            .checked_sub(sent)
            .ok_or(StreamError::CapacityExceeded { sent, capacity })?;
        for notification in notifications {
            self.start(notification);
        }
        Ok(())
    }

    fn start(&mut self, notification: Notification) {
        let lease = notification.lease.map(Duration::try_from);
        let lease_expires_at = lease
            .and_then(Result::ok)
            .and_then(|lease| Instant::now().checked_add(lease));
        let is_test = notification.test;
        let guard = (!is_test).then(|| self.in_flight.add());
        let sender = Arc::clone(&self.shared.sender);
        let (reporter, outcomes) = (Arc::clone(&self.reporter), self.outcomes.clone());
        self.sends.spawn(async move {
            let completed = Completed {
                outcome: sender.send(notification).await,
                lease_expires_at,
                guard,
            };
            if is_test {
                reporter.report_test(completed).await;
            } else {
                // Fails only after the session was aborted.
                let _ = outcomes.send(completed);
            }
        });
    }

    /// The capacity that is free and not granted.
    fn grantable(&self) -> usize {
        let used = self.in_flight.count() + self.granted;
        self.shared.limit.borrow().saturating_sub(used)
    }
}

fn request(capacity: usize) -> ReceiveRequest {
    ReceiveRequest {
        capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests;
