//! Serves a dispatcher stream from its opening to its end.

use std::{pin::Pin, sync::Arc};

use futures_util::{Stream, TryStreamExt as _};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{
    Queue,
    streams::{DispatcherStream, Responses},
    test_sends::TestSends,
};

use crate::error::Error;

/// Serves dispatcher streams.
pub(crate) struct StreamServer {
    pub(crate) queue: Arc<Queue>,
    pub(crate) test_sends: Arc<TestSends>,
    /// Ends the streams.
    pub(crate) shutdown: CancellationToken,
}

impl StreamServer {
    /// Serves a stream until its dispatcher half-closes or disconnects, its token expires, its
    /// client is no longer permitted, or core shuts down. It ends between claims, so that
    /// everything claimed is sent.
    pub(crate) async fn serve(
        &self,
        requests: impl Stream<Item = Result<proto::ReceiveRequest, Status>> + Unpin,
        responses: &Responses,
        revoked: Pin<&mut (dyn Future<Output = Error> + Send)>,
    ) -> Result<(), Error> {
        let (stream, mut pre_leased) = self.queue.streams.open(responses);
        let closed = self.shutdown.child_token();
        let receiving = async {
            let receiving = receive(requests, &stream);
            closed.run_until_cancelled(receiving).await;
            closed.cancel();
            self.queue.streams.close(&stream);
        };
        let pushing = async {
            let pushed = self
                .push(&stream, &mut pre_leased, responses, &closed)
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
        // Wait for a report that claims for this stream, so that what it claims is sent.
        drop(stream.claiming.write().await);
        pre_leased.close();
        let mut unsent = Vec::new();
        while let Ok(pre_leased) = pre_leased.try_recv() {
            unsent.push(pre_leased.lease());
        }
        let released = self.queue.release(unsent).await;
        watched.and(pushed).and(released)
    }
}

/// Receives capacity until the dispatcher half-closes or disconnects.
async fn receive(
    mut requests: impl Stream<Item = Result<proto::ReceiveRequest, Status>> + Unpin,
    stream: &DispatcherStream,
) {
    while let Ok(Some(request)) = requests.try_next().await {
        stream.flow_control().grant(request.capacity);
        stream.claim_now.notify_one();
    }
}
