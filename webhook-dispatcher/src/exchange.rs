//! The exchange with one core: receive, send, report; again and again, over as many streams as
//! it takes. Sends outlive the stream they came from, and what comes of them is reported to any
//! core there is a stream from.

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
    core::{Core, OpenError, Stream},
    holding::Holding,
    ledger::CreditExceeded,
    readiness::OpenStreams,
    webhook_tests::WebhookTests,
};

/// How long core may take to end a stream on which nothing is owed any more.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// How long core may take to confirm what it was told, on the way out: then another is told.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything about one core.
pub(crate) struct Exchange {
    core: Core,
    holding: Holding,
    /// How many notifications may be in flight; changes when cores come and go.
    share: watch::Receiver<usize>,
    backoff: Backoff,
    streams: OpenStreams,
    end: End,
}

/// What ends an exchange.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// This one shall end; so it is when all shall.
    pub this: CancellationToken,
    /// The dispatcher shall end.
    pub all: CancellationToken,
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
    #[error("core confirmed nothing for {CONFIRMATION_TIMEOUT:?}")]
    Unconfirmed,
    #[error(transparent)]
    CreditExceeded(#[from] CreditExceeded),
}

impl Exchange {
    pub(crate) fn new(
        core: Core,
        holding: Holding,
        share: watch::Receiver<usize>,
        streams: OpenStreams,
        end: End,
    ) -> Self {
        Self {
            core,
            holding,
            share,
            backoff: Backoff::default(),
            streams,
            end,
        }
    }

    /// Runs until told to end. Then, if its core alone is gone, until its sends have ended; else
    /// until cores have confirmed all that any exchange holds, however long that takes.
    #[tracing::instrument(name = "exchange", skip_all, fields(core = %self.core.addr()))]
    pub(crate) async fn run(mut self) {
        while self.needs_stream().await {
            let held = self.hold_stream().await;
            self.holding.leave_to_others();
            let Err(broken) = held else {
                continue;
            };
            if let Broken::Status(status) = &broken {
                self.core.forget_token_if_refused(status);
            }
            let wait = self.backoff.next();
            tracing::warn!(
                error = &broken as &dyn std::error::Error,
                ?wait,
                "no stream from core"
            );
            self.rest(wait).await;
        }
    }

    /// Waits until there is something to hold a stream for; false if there never will be.
    async fn needs_stream(&mut self) -> bool {
        loop {
            self.holding.leave_to_others();
            if !self.is_ending() {
                return true;
            }
            let is_over = if self.end.all.is_cancelled() {
                if self.holding.are_strays_waiting() {
                    return true;
                }
                self.holding.is_all_settled()
            } else {
                // Others have streams.
                self.holding.is_settled()
            };
            if is_over {
                return false;
            }
            let are_others_ending = self.end.all.is_cancelled();
            tokio::select! {
                () = self.holding.changed() => {}
                () = self.end.all.cancelled(), if !are_others_ending => {}
            }
        }
    }

    /// Waits before the next stream, unless none is needed any more.
    async fn rest(&mut self, wait: Duration) {
        let mut waited = pin!(sleep(wait));
        loop {
            let is_ending = self.is_ending();
            if is_ending && !self.holding.are_strays_waiting() {
                return;
            }
            tokio::select! {
                () = &mut waited => return,
                () = self.holding.changed() => self.holding.leave_to_others(),
                () = self.end.this.cancelled(), if !is_ending => {}
            }
        }
    }

    /// Holds one stream until the clean end, or until none is needed.
    async fn hold_stream(&mut self) -> Result<(), Broken> {
        let Some(stream) = self.open().await? else {
            return Ok(());
        };
        let _open = self.streams.add();
        tracing::info!("stream from core is open");

        let responses = self.converse(stream).await?;
        self.await_confirmation(responses).await
    }

    /// Opens a stream. What was sent before goes on meanwhile, and is left to those who have one.
    async fn open(&mut self) -> Result<Option<Stream>, OpenError> {
        let accepting = !self.is_ending();
        self.holding.ledger.begin_stream();
        self.holding.ledger.set_limit(*self.share.borrow());
        let first = self.holding.ledger.next_request(accepting);
        let mut opening = pin!(self.core.open(first));
        loop {
            tokio::select! {
                stream = &mut opening => return stream.map(Some),
                () = self.holding.changed() => self.holding.leave_to_others(),
                () = self.end.this.cancelled(), if accepting => return Ok(None),
            }
            if !accepting && !self.holding.are_strays_waiting() {
                return Ok(None);
            }
        }
    }

    /// Receives, sends and reports until the end has come and all is reported, and half-closes
    /// the stream.
    async fn converse(&mut self, mut stream: Stream) -> Result<Streaming<StreamResponse>, Broken> {
        let mut tests = WebhookTests::new(Arc::clone(self.holding.sender()));
        loop {
            self.holding.collect_ended();
            self.holding.adopt_strays();
            let ledger = &mut self.holding.ledger;
            ledger.set_limit(*self.share.borrow_and_update());
            let accepting = !self.end.this.is_cancelled();
            if !accepting && ledger.is_reported() && tests.is_reported() {
                let finished = StreamRequest {
                    finished: true,
                    ..StreamRequest::default()
                };
                // A core that has gone away has nothing to hear.
                let _ = stream.requests.send(finished).await;
                return Ok(stream.responses);
            }

            let has_request = ledger.has_request(accepting) || tests.has_outcomes();
            tokio::select! {
                response = stream.responses.message() => {
                    let response = response?.ok_or(Broken::Ended)?;
                    self.backoff.reset();
                    if accepting {
                        self.holding.begin(response.notifications)?;
                    } else {
                        self.decline(&response.notifications)?;
                    }
                    self.holding.record(response.recorded);
                    for test in response.tests {
                        tests.begin(test);
                    }
                }
                Some(()) = tests.next_ended() => {}
                () = self.holding.changed() => {}
                permit = stream.requests.reserve(), if has_request => match permit {
                    Ok(permit) => permit.send(StreamRequest {
                        test_outcomes: tests.take_outcomes(),
                        ..self.holding.ledger.next_request(accepting)
                    }),
                    // Core's reason, if it gave one, is at the end of what it sent.
                    Err(_) => return Err(reason(&mut stream.responses).await),
                },
                Ok(()) = self.share.changed() => {}
                () = self.end.this.cancelled(), if accepting => {}
            }
        }
    }

    /// Reads confirmations from a half-closed stream to its end.
    async fn await_confirmation(
        &mut self,
        mut responses: Streaming<StreamResponse>,
    ) -> Result<(), Broken> {
        loop {
            let is_settled = self.holding.is_settled();
            let patience = if is_settled {
                END_TIMEOUT
            } else {
                CONFIRMATION_TIMEOUT
            };
            match timeout(patience, responses.message()).await {
                Ok(Ok(Some(response))) => {
                    self.decline(&response.notifications)?;
                    self.holding.record(response.recorded);
                }
                _ if is_settled => return Ok(()),
                Ok(Ok(None)) => return Err(Broken::Ended),
                Ok(Err(status)) => return Err(status.into()),
                Err(_) => return Err(Broken::Unconfirmed),
            }
        }
    }

    /// What comes on the way out is not sent: a receiver that hangs would keep this up for ever.
    /// Core has it back with the word that all is finished, and gives it to another dispatcher.
    fn decline(&mut self, notifications: &[Notification]) -> Result<(), CreditExceeded> {
        if !notifications.is_empty() {
            let count = notifications.len();
            tracing::info!(count, "not sent, being on the way out");
        }
        self.holding.ledger.decline(notifications)
    }

    fn is_ending(&self) -> bool {
        self.end.this.is_cancelled()
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

#[cfg(test)]
mod tests;
