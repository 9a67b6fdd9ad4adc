//! Receives credit and outcomes on a stream. Outcomes are recorded in batches, and the capacity
//! that they free is refilled in the same transaction.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use super::{
    claims::ClaimResult,
    outcome_batch::OutcomeBatch,
    outcomes::Outcomes,
    streams::{DispatcherStream, Responses, Streams},
    test_sends::TestStream,
};
use crate::error::Error;

/// The receiving half of a stream.
pub(in crate::grpc) struct OutcomeReceiver {
    pub(in crate::grpc) streams: Arc<Streams>,
    pub(in crate::grpc) outcomes: Arc<Outcomes>,
}

impl OutcomeReceiver {
    /// Forwards test outcomes, records outcomes and takes credit, until the dispatcher half-closes or
    /// disconnects.
    pub(super) async fn run(
        &self,
        (stream, tests): (&Arc<DispatcherStream>, TestStream),
        mut requests: Streaming<proto::StreamRequest>,
        responses: &Responses,
        closed: &CancellationToken,
    ) -> Result<(), Error> {
        let mut batch = OutcomeBatch::default();
        loop {
            let next = tokio::select! {
                biased;
                next = requests.message() => next.ok().flatten(),
                // An empty request: only the batch is to be recorded.
                () = batch.wait() => Some(proto::StreamRequest::default()),
                () = closed.cancelled() => None,
            };
            // After the stream closed, at most one more request is read.
            let is_closed = next.is_none() || closed.is_cancelled();
            let mut request = next.unwrap_or_default();
            tests.complete(std::mem::take(&mut request.test_outcomes));
            batch.add(&request, stream);
            let is_last = is_closed || request.draining;
            if (is_last || batch.is_complete(stream))
                && !self
                    .record(
                        (stream, is_last),
                        std::mem::take(&mut batch),
                        responses,
                        closed,
                    )
                    .await?
            {
                return Ok(());
            }
            if request.draining {
                tests.close();
                self.streams.drain(stream);
            }
            if is_closed {
                return Ok(());
            }
        }
    }

    /// Records a batch of outcomes and acknowledges it, together with as many new notifications if
    /// they are due; returns whether the dispatcher is still connected.
    async fn record(
        &self,
        (stream, is_last): (&DispatcherStream, bool),
        batch: OutcomeBatch,
        responses: &Responses,
        closed: &CancellationToken,
    ) -> Result<bool, Error> {
        if batch.acks.is_empty() {
            return Ok(true);
        }
        // Before the claim: a dispatcher that does not read gets no leases.
        let permit = responses.try_reserve().ok();
        let result = if permit.is_some() && stream.expects_more_due() && !is_last {
            Some(
                self.outcomes
                    .record_and_claim(&batch.reports, stream)
                    .await?,
            )
        } else {
            self.outcomes.record(&batch.reports).await?;
            None
        };
        if let Some(result) = &result {
            stream.record_expects_more_due(matches!(result, ClaimResult::Claimed { .. }));
        }
        let mut response = proto::StreamResponse {
            acks: batch.acks,
            ..proto::StreamResponse::default()
        };
        let mut unsendable = Vec::new();
        if let Some(ClaimResult::Claimed { batch, may_be_more }) = result {
            response.notifications = batch.notifications;
            unsendable = batch.unsendable;
            if may_be_more {
                stream.claim_now.notify_one();
            }
            stream.claim_soon.notify_one();
        } else {
            // The freed capacity may make due notifications claimable.
            stream.claim_now.notify_one();
        }
        let Some(permit) = permit else {
            return tokio::select! {
                biased;
                sent = responses.send(Ok(response)) => Ok(sent.is_ok()),
                () = closed.cancelled() => Ok(false),
            };
        };
        permit.send(Ok(response));
        self.outcomes.record_unsendable(&unsendable).await;
        Ok(true)
    }
}
