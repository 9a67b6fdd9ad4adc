//! Outcomes on their way into one transaction: a flush costs the same for one as for many.

use std::time::Duration;

use tokio::time::Instant;

use super::{BATCH, GATHERING, GATHERING_FOR_MORE, outcomes, streams::Line};
use storage::notifications::Report;

/// What has come back on a stream and is not recorded yet.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) reports: Vec<Report>,
    /// How each outcome is confirmed once it is recorded.
    pub(super) confirmations: Vec<proto::Recorded>,
    /// When the first has waited long enough.
    until: Option<Instant>,
}

impl Gathered {
    /// Takes what a dispatcher says. The places of what has ended are free at once, before it is
    /// recorded, which may take a while.
    pub(super) fn add(&mut self, request: &proto::StreamRequest, line: &Line) {
        let reports: Vec<_> = request
            .outcomes
            .iter()
            .filter_map(outcomes::report)
            .collect();
        {
            let mut account = line.account();
            for report in &reports {
                account.end(report.id, report.lease_token);
            }
            account.grant(request.credit);
        }
        if !request.outcomes.is_empty() {
            self.until
                .get_or_insert_with(|| Instant::now() + gathering(line));
        } else if request.credit > 0 {
            line.look.notify_one();
        }
        self.reports.extend(reports);
        let confirmations = request.outcomes.iter().map(outcomes::recorded);
        self.confirmations.extend(confirmations);
    }

    /// Whether to wait no longer: there are enough, or none is left to come, or the first has
    /// waited long enough.
    pub(super) fn is_complete(&self, line: &Line) -> bool {
        let Some(until) = self.until else {
            return false;
        };
        self.confirmations.len() >= BATCH
            || line.account().holds_nothing()
            || until <= Instant::now()
    }

    /// Returns when the first has waited long enough; never if there is none.
    pub(super) async fn wait(&self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }
}

fn gathering(line: &Line) -> Duration {
    if line.is_filling() {
        GATHERING_FOR_MORE
    } else {
        GATHERING
    }
}
