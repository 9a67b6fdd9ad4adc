//! Serves a dispatcher stream from its opening to its end.

use std::{pin::Pin, sync::Arc};

use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::{
    leases::Leases,
    push::Pusher,
    streams::{DispatcherStream, Responses, Streams},
    test_sends::TestSends,
};

use crate::error::Error;

/// Serves dispatcher streams.
pub(in crate::grpc) struct StreamServer {
    pub(in crate::grpc) streams: Arc<Streams>,
    pub(in crate::grpc) test_sends: Arc<TestSends>,
    pub(in crate::grpc) pusher: Pusher,
    pub(in crate::grpc) leases: Arc<Leases>,
    /// Ends the streams.
    pub(in crate::grpc) shutdown: CancellationToken,
}

impl StreamServer {
    /// Serves a stream until its dispatcher half-closes or disconnects, its token expires, its
    /// client is no longer permitted, or core shuts down. It ends between claims, so that
    /// everything claimed is sent.
    pub(super) async fn serve(
        &self,
        requests: Streaming<proto::ReceiveRequest>,
        responses: &Responses,
        revoked: Pin<&mut (dyn Future<Output = Error> + Send)>,
    ) -> Result<(), Error> {
        let (stream, mut pre_leased) = self.streams.open(responses);
        let closed = self.shutdown.child_token();
        let receiving = async {
            let received = closed.run_until_cancelled(receive(requests, &stream));
            let is_half_closed = matches!(received.await, Some(Ok(())));
            closed.cancel();
            self.streams.close(&stream);
            if !is_half_closed {
                self.test_sends.fail(&stream);
            }
        };
        let pushing = async {
            let pushed = self
                .pusher
                .run(&stream, &mut pre_leased, responses, &closed)
                .await;
            closed.cancel();
            pushed
        };
        let watching = async {
            let revoked = closed.run_until_cancelled(revoked).await;
            closed.cancel();
            revoked.map_or(Ok(()), Err)
        };
        let ((), pushed, watched) = tokio::join!(receiving, pushing, watching);
        // What a claim together with outcomes has found is sent before the stream ends.
        drop(stream.claiming.write().await);
        pre_leased.close();
        let mut unsent = Vec::new();
        while let Ok(pre_leased) = pre_leased.try_recv() {
            unsent.push(pre_leased.lease());
        }
        let released = self.leases.release(unsent).await;
        watched.and(pushed).and(released)
    }
}

/// Receives capacity until the dispatcher half-closes. Fails if it disconnects.
async fn receive(
    mut requests: Streaming<proto::ReceiveRequest>,
    stream: &DispatcherStream,
) -> Result<(), Status> {
    while let Some(request) = requests.message().await? {
        stream.flow_control().grant(request.capacity);
        stream.claim_now.notify_one();
    }
    Ok(())
}
