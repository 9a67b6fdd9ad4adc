//! Handles the reports of dispatchers: records outcomes, refills the capacity that they free, and
//! passes on the outcomes of test sends.

use tokio::sync::RwLockReadGuard;

use super::{
    claims::{ClaimResult, PendingClaim},
    reports,
    stream_server::StreamServer,
    streams::DispatcherStream,
};
use crate::error::Error;
use storage::notifications::AttemptReport;

impl StreamServer {
    /// Records a report. If it fails, the dispatcher reports the same again, which changes nothing
    /// that is already recorded.
    pub(crate) async fn report(
        &self,
        request: proto::ReportOutcomesRequest,
    ) -> Result<proto::ReportOutcomesResponse, Error> {
        let outcomes = request.outcomes.into_iter();
        let (of_tests, outcomes): (Vec<_>, Vec<_>) =
            outcomes.partition(|outcome| outcome.lease_token.is_empty());
        self.test_sends.complete(of_tests);
        let attempts = outcomes.iter().filter_map(reports::attempt);
        let attempts: Vec<_> = attempts.collect();
        // Frees capacity before the outcomes are recorded, which may take a while.
        let leases = attempts
            .iter()
            .map(|attempt| (attempt.id, attempt.lease_token));
        let stream = self.queue.streams.complete(&leases.collect::<Vec<_>>());
        match &stream {
            Some(stream) => self.record_attempts(&attempts, stream).await?,
            None => self.queue.record(&attempts).await?,
        }
        Ok(proto::ReportOutcomesResponse {
            more_due: stream.is_some_and(|stream| stream.expects_more_due()),
        })
    }

    /// Records attempts and, if more is expected to be due, sends as many new notifications on
    /// their stream.
    async fn record_attempts(
        &self,
        attempts: &[AttemptReport],
        stream: &DispatcherStream,
    ) -> Result<(), Error> {
        // Held until what is claimed is sent: the stream ends after that.
        let _claiming: RwLockReadGuard<'_, ()> = stream.claiming.read().await;
        // Before the claim: a dispatcher that does not read gets no leases.
        let permit = stream
            .responses()
            .filter(|_| stream.expects_more_due())
            .and_then(|responses| responses.try_reserve_owned().ok());
        // Not more than are reported, so that credit is left for what is pre-leased meanwhile.
        let limit = u32::try_from(attempts.len()).unwrap_or(u32::MAX);
        let claim = permit
            .is_some()
            .then(|| PendingClaim::begin(stream, limit))
            .flatten();
        let (Some(permit), Some(claim)) = (permit, claim) else {
            self.queue.record(attempts).await?;
            // The freed capacity may make due notifications claimable.
            stream.claim_now.notify_one();
            return Ok(());
        };
        let result = self.queue.record_and_claim(attempts, claim).await?;
        stream.record_expects_more_due(matches!(result, ClaimResult::Claimed { .. }));
        let ClaimResult::Claimed { batch, may_be_more } = result else {
            stream.claim_now.notify_one();
            return Ok(());
        };
        drop(permit.send(Ok(proto::ReceiveResponse {
            notifications: batch.notifications,
        })));
        if may_be_more {
            stream.claim_now.notify_one();
        }
        stream.claim_soon.notify_one();
        self.queue.record_undecryptable(&batch.undecryptable).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use domain::id::StoreId;
    use futures_util::FutureExt as _;
    use tokio::sync::mpsc;

    use super::super::fixture::{queue, stream_server};

    #[tokio::test]
    async fn the_caller_of_a_test_send_gets_its_reported_outcome() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let server = stream_server(queue);
        let (responses, _sent) = mpsc::channel(1);
        let _open = server.queue.streams.open(&responses);
        let sample = proto::Notification::default();
        let mut test = pin!(server.test_sends.send(StoreId::new(), sample));
        assert!(test.as_mut().now_or_never().is_none());
        let outcome = |lease_token: &str| proto::Outcome {
            lease_token: lease_token.to_owned(),
            ..proto::Outcome::default()
        };
        let report = |lease_token| proto::ReportOutcomesRequest {
            outcomes: vec![outcome(lease_token)],
        };

        server.report(report("lease-1")).await.unwrap();
        assert!(test.as_mut().now_or_never().is_none(), "not its outcome");
        server.report(report("")).await.unwrap();

        assert_eq!(test.await.unwrap(), outcome(""));
    }
}
