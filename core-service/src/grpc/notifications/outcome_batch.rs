//! Collects outcomes for one transaction, since a flush costs the same for one as for many.

use std::time::Duration;

use tokio::time::Instant;

use super::{reports, streams::DispatcherStream};
use storage::notifications::AttemptReport;

/// A batch with this many outcomes is recorded at once. Its last message may exceed the number.
const MAX_OUTCOMES: usize = 256;

/// How long to wait for more outcomes, so that they are recorded together.
pub(super) const BATCH_WINDOW: Duration = Duration::from_millis(20);
/// The same while more due notifications are expected; shorter, because the freed capacity is
/// unused meanwhile.
const MORE_DUE_BATCH_WINDOW: Duration = Duration::from_millis(5);

/// Outcomes from a stream that are not recorded yet.
#[derive(Debug, Default)]
pub(super) struct OutcomeBatch {
    pub(super) reports: Vec<AttemptReport>,
    /// Acknowledges the outcomes once they are recorded.
    pub(super) acks: Vec<proto::Ack>,
    /// When the batch is to be recorded at the latest; `None` while it is empty.
    deadline: Option<Instant>,
}

impl OutcomeBatch {
    /// Adds the outcomes of a request. Their notifications are no longer in flight, even
    /// before the outcomes are recorded, which may take a while.
    pub(super) fn add(&mut self, request: &proto::StreamRequest, stream: &DispatcherStream) {
        let reports: Vec<_> = request
            .outcomes
            .iter()
            .filter_map(reports::report)
            .collect();
        {
            let mut flow_control = stream.flow_control();
            for report in &reports {
                flow_control.complete(report.id, report.lease_token);
            }
            flow_control.grant(request.credit);
        }
        if !request.outcomes.is_empty() {
            self.deadline
                .get_or_insert_with(|| Instant::now() + window(stream));
        } else if request.credit > 0 {
            stream.claim_now.notify_one();
        }
        self.reports.extend(reports);
        self.acks.extend(request.outcomes.iter().map(reports::ack));
    }

    /// Whether to record the batch now: it is full, nothing is in flight that could be added, or
    /// its deadline has passed.
    pub(super) fn is_complete(&self, stream: &DispatcherStream) -> bool {
        let Some(deadline) = self.deadline else {
            return false;
        };
        self.acks.len() >= MAX_OUTCOMES
            || stream.flow_control().is_idle()
            || deadline <= Instant::now()
    }

    /// Waits for the deadline; for ever while the batch is empty.
    pub(super) async fn wait(&self) {
        match self.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }
}

fn window(stream: &DispatcherStream) -> Duration {
    if stream.expects_more_due() {
        MORE_DUE_BATCH_WINDOW
    } else {
        BATCH_WINDOW
    }
}
