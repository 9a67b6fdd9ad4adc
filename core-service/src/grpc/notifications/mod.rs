//! Notifications: the dispatchers' streams. On each, one half hands out what is born to it and
//! what is due when it looks; the other records what comes back, and fills the places that it
//! frees. Neither waits for the other.

mod account;
mod attempt_log;
mod gathering;
mod handing_out;
mod leases;
mod outcomes;
mod owing;
mod retention;
mod streams;
mod taking_back;

use std::{pin::Pin, sync::Arc, time::Duration};

use domain::{api_client::Scope, fairness::LEASE};
use futures_util::Stream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response as Reply, Status, Streaming};

pub(super) use self::outcomes::failure;
pub(crate) use self::{
    attempt_log::{AttemptLog, Attempts, attempt_log},
    leases::take_over,
    owing::{Owing, owe},
    streams::{Streams, Unsent},
};
use self::{handing_out::hand_out, taking_back::take_back};
use super::{Core, caller::Caller};

use crate::error::Error;

/// How many outcomes are recorded by one transaction at most, or a message more; and how many
/// notifications go in one message.
const BATCH: usize = 256;

/// How long outcomes gather to be recorded together, and places to be filled together, while
/// more are on their way anyway.
const GATHERING: Duration = Duration::from_millis(20);
/// As long as free places are filled again: each stands empty meanwhile.
const GATHERING_FOR_MORE: Duration = Duration::from_millis(5);

/// How many leases one statement names at most: databases limit how long a condition may be,
/// dispatchers don't limit what they tell.
const STATEMENT: usize = 256;

pub(super) type Response = Result<proto::StreamResponse, Status>;
pub(super) type Responses = mpsc::Sender<Response>;

/// So that the stream type can be named without its generics.
type ResponseStream = Pin<Box<dyn Stream<Item = Response> + Send + 'static>>;

/// [`Core`] behind the `Arc` that its streams' loops share.
pub(crate) struct Notifications(pub(crate) Arc<Core>);

#[tonic::async_trait]
impl proto::notifications_server::Notifications for Notifications {
    type StreamStream = ResponseStream;

    async fn stream(
        &self,
        request: Request<Streaming<proto::StreamRequest>>,
    ) -> Result<Reply<Self::StreamStream>, Status> {
        let core = Arc::clone(&self.0);
        let token = request.metadata().clone();
        core.authenticate(&token)
            .await?
            .require(Scope::Notifications)?;

        let (responses, stream) = mpsc::channel(4);
        let requests = request.into_inner();
        self.0.loops.spawn(async move {
            let permit = |caller: &Caller| caller.require(Scope::Notifications);
            let mut revoked = std::pin::pin!(core.revoked(&token, permit));
            let served = serve(&core, requests, &responses, revoked.as_mut()).await;
            if let Err(error) = served {
                // A dispatcher that has gone away hears nothing; its leases end by themselves.
                let _ = responses.try_send(Err(error.into()));
            }
        });
        Ok(Reply::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// Serves a stream until its dispatcher half-closes or goes away, its client may hold it no
/// more, or core shuts down. It ends between claims, never within one: what is leased is sent.
async fn serve(
    core: &Core,
    requests: Streaming<proto::StreamRequest>,
    responses: &Responses,
    revoked: Pin<&mut (dyn Future<Output = Error> + Send)>,
) -> Result<(), Error> {
    let (line, mut births) = core.streams.open(responses);
    let tests = core.webhook_tests.open(responses);
    let ended = core.shutdown.child_token();
    let taking_back = async {
        let taken_back = take_back(core, (&line, tests), requests, responses, &ended).await;
        ended.cancel();
        taken_back
    };
    let handing_out = async {
        let handed_out = hand_out(core, &line, &mut births, responses, &ended).await;
        ended.cancel();
        handed_out
    };
    let watching = async {
        let revoked = ended.run_until_cancelled(revoked).await;
        ended.cancel();
        revoked.map_or(Ok(()), Err)
    };
    let (taken_back, handed_out, watched) = tokio::join!(taking_back, handing_out, watching);
    // What the dispatcher holds goes on without the stream; what it was not sent is another's.
    core.streams.close(&line);
    births.close();
    let unsent = std::iter::from_fn(|| births.try_recv().ok());
    let released = core.release(unsent.map(|birth| birth.lease()).collect());
    let released = released.await;
    watched.and(taken_back).and(handed_out).and(released)
}
