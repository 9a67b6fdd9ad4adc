//! The exchange with one core: receive, send, report; again and again, over as many streams as
//! it takes. Sends outlive the stream they came from.

use std::sync::Arc;

use proto::{Notification, Outcome, StreamRequest, StreamResponse};
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::{Duration, timeout},
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::{
    backoff::Backoff,
    core::{Core, OpenError, Stream},
    ledger::{CreditExceeded, Ledger},
    readiness::OpenStreams,
    sender::Sender,
    webhook_tests::WebhookTests,
};

/// How long core may take to end a stream on which nothing is owed any more.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Everything about one core.
pub(crate) struct Exchange {
    core: Core,
    sender: Arc<Sender>,
    ledger: Ledger,
    /// How many notifications may be in flight; changes when cores come and go.
    share: watch::Receiver<usize>,
    sends: JoinSet<Outcome>,
    backoff: Backoff,
    streams: OpenStreams,
    shutdown: CancellationToken,
}

/// Why a stream broke.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("core ended the stream with an error")]
    Status(#[from] Status),
    #[error("core ended the stream")]
    Ended,
    #[error(transparent)]
    CreditExceeded(#[from] CreditExceeded),
}

impl Exchange {
    pub(crate) fn new(
        core: Core,
        sender: Arc<Sender>,
        share: watch::Receiver<usize>,
        streams: OpenStreams,
        shutdown: CancellationToken,
    ) -> Self {
        let limit = *share.borrow();
        Self {
            core,
            sender,
            ledger: Ledger::new(limit),
            share,
            sends: JoinSet::new(),
            backoff: Backoff::default(),
            streams,
            shutdown,
        }
    }

    /// Runs until told to end and core has confirmed all it is owed, however long that takes.
    #[tracing::instrument(name = "exchange", skip_all, fields(core = %self.core.addr()))]
    pub(crate) async fn run(mut self) {
        while let Err(broken) = self.hold_stream().await {
            if let Broken::Status(status) = &broken {
                self.core.forget_token_if_refused(status);
            }
            let wait = self.backoff.next();
            tracing::warn!(
                error = &broken as &dyn std::error::Error,
                ?wait,
                "no stream from core"
            );
            let settled = self.ledger.is_settled();
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.shutdown.cancelled(), if settled => {}
            }
        }
    }

    /// Holds one stream until the clean end.
    async fn hold_stream(&mut self) -> Result<(), Broken> {
        self.collect_finished();
        let settled = self.ledger.is_settled();
        if settled && self.shutdown.is_cancelled() {
            return Ok(());
        }

        self.ledger.begin_stream();
        let first = self.ledger.next_request(!self.shutdown.is_cancelled());
        let stream = tokio::select! {
            stream = self.core.open(first) => stream?,
            () = self.shutdown.cancelled(), if settled => return Ok(()),
        };
        let _open = self.streams.add();
        tracing::info!("stream from core is open");

        let responses = self.converse(stream).await?;
        self.await_confirmation(responses).await
    }

    /// Receives, sends and reports until the shutdown has come and all is reported, and
    /// half-closes the stream.
    async fn converse(&mut self, mut stream: Stream) -> Result<Streaming<StreamResponse>, Broken> {
        let mut tests = WebhookTests::new(Arc::clone(&self.sender));
        loop {
            self.collect_finished();
            self.ledger.set_limit(*self.share.borrow_and_update());
            let accepting = !self.shutdown.is_cancelled();
            if !accepting && self.ledger.is_reported() && tests.is_reported() {
                let finished = StreamRequest {
                    finished: true,
                    ..StreamRequest::default()
                };
                // A core that has gone away has nothing to hear.
                let _ = stream.requests.send(finished).await;
                return Ok(stream.responses);
            }

            let has_request = self.ledger.has_request(accepting) || tests.has_outcomes();
            tokio::select! {
                response = stream.responses.message() => {
                    let response = response?.ok_or(Broken::Ended)?;
                    self.backoff.reset();
                    self.ledger.take(&response.notifications)?;
                    for notification in response.notifications {
                        self.send(notification);
                    }
                    for recorded in response.recorded {
                        self.ledger.record(recorded);
                    }
                    for test in response.tests {
                        tests.begin(test);
                    }
                }
                Some(()) = tests.next_ended() => {}
                Some(ended) = self.sends.join_next() => self.finish(ended),
                permit = stream.requests.reserve(), if has_request => match permit {
                    Ok(permit) => permit.send(StreamRequest {
                        test_outcomes: tests.take_outcomes(),
                        ..self.ledger.next_request(accepting)
                    }),
                    // Core's reason, if it gave one, is at the end of what it sent.
                    Err(_) => return Err(reason(&mut stream.responses).await),
                },
                Ok(()) = self.share.changed() => {}
                () = self.shutdown.cancelled(), if accepting => {}
            }
        }
    }

    /// Reads confirmations from a half-closed stream to its end.
    async fn await_confirmation(
        &mut self,
        mut responses: Streaming<StreamResponse>,
    ) -> Result<(), Broken> {
        loop {
            let response = if self.ledger.is_settled() {
                match timeout(END_TIMEOUT, responses.message()).await {
                    Ok(response) => response,
                    Err(_) => return Ok(()),
                }
            } else {
                responses.message().await
            };

            match response {
                Ok(Some(response)) => {
                    // Sent before core saw the half-close. Their outcomes could not be reported,
                    // so they are not sent, and core gives them to another dispatcher.
                    if !response.notifications.is_empty() {
                        let count = response.notifications.len();
                        tracing::info!(count, "left to their lease, being on the way out");
                    }
                    for recorded in response.recorded {
                        self.ledger.record(recorded);
                    }
                }
                _ if self.ledger.is_settled() => return Ok(()),
                Ok(None) => return Err(Broken::Ended),
                Err(status) => return Err(status.into()),
            }
        }
    }

    fn send(&mut self, notification: Notification) {
        let sender = Arc::clone(&self.sender);
        self.sends
            .spawn(async move { sender.send(notification).await });
    }

    fn collect_finished(&mut self) {
        while let Some(ended) = self.sends.try_join_next() {
            self.finish(ended);
        }
    }

    fn finish(&mut self, ended: Result<Outcome, JoinError>) {
        let outcome = ended
            .inspect_err(|error| tracing::error!(%error, "a send was lost; its lease will end"))
            .ok();
        self.ledger.finish(outcome);
    }
}

async fn reason(responses: &mut Streaming<StreamResponse>) -> Broken {
    loop {
        match timeout(END_TIMEOUT, responses.message()).await {
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) | Err(_) => return Broken::Ended,
            Ok(Err(status)) => return Broken::Status(status),
        }
    }
}
