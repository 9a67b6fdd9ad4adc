//! The dispatchers' streams of notifications, and their reports of outcomes.

use std::{pin::Pin, sync::Arc};

use domain::api_client::Scope;
use futures_util::Stream;
use process::traces::Origin;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::{Reply, Services, stream_until_end};
use crate::{auth::caller::Caller, notifications::Response as StreamResponse};

#[tonic::async_trait]
impl proto::notifications_server::Notifications for Services {
    type ReceiveStream = Pin<Box<dyn Stream<Item = StreamResponse> + Send>>;

    async fn receive(
        &self,
        request: Request<Streaming<proto::ReceiveRequest>>,
    ) -> Reply<Self::ReceiveStream> {
        let (authenticator, queue) = (Arc::clone(&self.authenticator), Arc::clone(&self.queue));
        let (caller, claims) = self
            .authenticator
            .authenticate_stream(request.metadata())
            .await?;
        caller.require(Scope::Notifications)?;

        let (responses, stream) = mpsc::channel(4);
        let requests = request.into_inner();
        let serving = self.task_tracker.spawn(async move {
            let authorize = |caller: &Caller| caller.require(Scope::Notifications);
            let mut revoked = std::pin::pin!(authenticator.revoked(&claims, authorize));
            queue.serve(requests, &responses, revoked.as_mut()).await
        });
        Ok(Response::new(Box::pin(stream_until_end(stream, serving))))
    }

    async fn report_outcomes(
        &self,
        request: Request<proto::ReportOutcomesRequest>,
    ) -> Reply<proto::ReportOutcomesResponse> {
        let (_, request) = Caller::with_scope(request, Scope::Notifications)?;
        let queue = Arc::clone(&self.queue);
        // Runs to its end even if the call is cancelled: what is committed is also counted, and frees
        // capacity and hosts.
        let recording = Origin::current().run(async move { queue.report(request).await });
        let recording = self.task_tracker.spawn(recording);
        let recorded = recording
            .await
            .map_err(|_| Status::internal("the outcomes could not be recorded"))?;
        recorded?;
        Ok(Response::new(proto::ReportOutcomesResponse::default()))
    }
}
