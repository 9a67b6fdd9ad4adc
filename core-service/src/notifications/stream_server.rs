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
            let received = closed.run_until_cancelled(receive(requests, &stream));
            // A dispatcher of the same process has no connection whose loss would be an error.
            let is_half_closed = matches!(received.await, Some(Ok(()))) && !responses.is_closed();
            closed.cancel();
            self.queue.streams.close(&stream);
            if !is_half_closed {
                self.test_sends.fail(&stream);
            }
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

/// Receives capacity until the dispatcher half-closes. Fails if it disconnects.
async fn receive(
    mut requests: impl Stream<Item = Result<proto::ReceiveRequest, Status>> + Unpin,
    stream: &DispatcherStream,
) -> Result<(), Status> {
    while let Some(request) = requests.try_next().await? {
        stream.flow_control().grant(request.capacity);
        stream.claim_now.notify_one();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{future::pending, pin::pin};

    use domain::id::StoreId;
    use futures_util::FutureExt as _;
    use tokio::sync::mpsc;
    use tokio_stream::wrappers::ReceiverStream;

    use super::{
        super::fixture::{queue, stream_server},
        *,
    };

    /// A dispatcher still reports the test sends of a stream that it has half-closed.
    #[tokio::test]
    async fn the_test_sends_of_a_stream_fail_when_it_ends_before_it_is_half_closed() {
        let (_directory, queue, _unsent_leases) = queue().await;
        let server = stream_server(queue);
        for is_half_closed in [true, false] {
            let (requests, incoming) = mpsc::channel(1);
            let (responses, mut sent) = mpsc::channel(4);
            let mut revoked = pin!(pending::<Error>());
            let incoming = ReceiverStream::new(incoming);
            let mut serving = pin!(server.serve(incoming, &responses, revoked.as_mut()));
            let sample = proto::Notification::default();
            let mut test = pin!(server.test_sends.send(StoreId::new(), sample));
            tokio::select! {
                biased;
                ended = &mut serving => panic!("the stream ends: {ended:?}"),
                result = &mut test => panic!("the test ends: {result:?}"),
                response = sent.recv() => drop(response.unwrap().unwrap()),
            }

            if is_half_closed {
                drop(requests);
            } else {
                let disconnected = Err(Status::unavailable("the connection is lost"));
                requests.send(disconnected).await.unwrap();
            }
            serving.await.unwrap();

            let result = test.as_mut().now_or_never();
            if is_half_closed {
                assert!(result.is_none(), "{result:?}");
                let outcome = proto::Outcome::default();
                server.test_sends.complete(vec![outcome.clone()]);
                assert_eq!(test.await.unwrap(), outcome);
            } else {
                assert!(
                    matches!(result, Some(Err(Error::NoDispatcher))),
                    "{result:?}"
                );
            }
        }
    }
}
