//! Notifications: the dispatchers' streams. On each, one half hands out what is born to it and
//! claims while there is credit; the other records what comes back. Neither waits for the other.

mod account;
mod attempt_log;
mod gathering;
mod leases;
mod outcomes;
mod owing;
mod retention;
mod streams;

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::Stream;
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response as Reply, Status, Streaming};

pub(super) use self::outcomes::failure;
pub(crate) use self::{
    attempt_log::{AttemptLog, Attempts, attempt_log},
    leases::take_over,
    owing::{Owing, owe},
    streams::{Streams, Unsent},
};
use self::{
    gathering::Gathered,
    leases::{Found, HandedOut},
    streams::{Birth, Line},
};
use super::{Core, caller::Caller, webhook_tests::TestLine};
use crate::{
    domain::{api_client::Scope, fairness::LEASE},
    error::Error,
};

/// How many outcomes are recorded by one transaction at most, or a message more; and how many
/// notifications go in one message.
const BATCH: usize = 256;

/// How long outcomes gather to be recorded together, and places to be filled together, while
/// more are on their way anyway.
const GATHERING: Duration = Duration::from_millis(20);

/// How often the database is asked without a bell: soon after there was something, then ever
/// more rarely. It finds what other processes' bells announce, and what a schedule makes due.
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(1);

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
        let taken_back = tokio::select! {
            taken_back = take_back(core, (&line, tests), requests, responses, &ended) => taken_back,
            error = revoked => Err(error),
        };
        ended.cancel();
        taken_back
    };
    let handing_out = async {
        let handed_out = hand_out(core, &line, &mut births, responses, &ended).await;
        ended.cancel();
        handed_out
    };
    let (taken_back, handed_out) = tokio::join!(taking_back, handing_out);
    // What the dispatcher holds goes on without the stream; what it was not sent is another's.
    core.streams.close(&line);
    births.close();
    let unsent = std::iter::from_fn(|| births.try_recv().ok());
    let released = core.release(unsent.map(|birth| birth.lease()).collect());
    taken_back.and(handed_out).and(released.await)
}

/// Tells what came of tests, records outcomes and takes credit, until the dispatcher half-closes or
/// goes away.
async fn take_back(
    core: &Core,
    (line, tests): (&Arc<Line>, TestLine),
    mut requests: Streaming<proto::StreamRequest>,
    responses: &Responses,
    ended: &CancellationToken,
) -> Result<(), Error> {
    let mut gathered = Gathered::default();
    loop {
        let next = tokio::select! {
            biased;
            next = requests.message() => next.ok().flatten(),
            () = gathered.wait() => Some(proto::StreamRequest::default()),
            () = ended.cancelled() => None,
        };
        let is_over = next.is_none();
        let mut request = next.unwrap_or_default();
        tests.tell(std::mem::take(&mut request.test_outcomes));
        gathered.add(&request, line);
        if (is_over || request.finished || gathered.is_complete(line))
            && !record(core, line, std::mem::take(&mut gathered), responses, ended).await?
        {
            return Ok(());
        }
        if request.finished {
            tests.close();
            core.release(core.streams.close(line)).await?;
        }
        if is_over {
            return Ok(());
        }
    }
}

/// Records outcomes and confirms them; whether the dispatcher still hears.
async fn record(
    core: &Core,
    line: &Line,
    gathered: Gathered,
    responses: &Responses,
    ended: &CancellationToken,
) -> Result<bool, Error> {
    if gathered.confirmations.is_empty() {
        return Ok(true);
    }
    core.record(&gathered.reports).await?;
    // Of those that had no place free, some now may have.
    line.look.notify_one();
    let response = proto::StreamResponse {
        recorded: gathered.confirmations,
        ..proto::StreamResponse::default()
    };
    tokio::select! {
        biased;
        sent = responses.send(Ok(response)) => Ok(sent.is_ok()),
        () = ended.cancelled() => Ok(false),
    }
}

/// Hands out what is born to a stream, and claims what is due, while there is credit.
async fn hand_out(
    core: &Core,
    line: &Arc<Line>,
    births: &mut mpsc::UnboundedReceiver<Birth>,
    responses: &Responses,
    ended: &CancellationToken,
) -> Result<(), Error> {
    let mut bell = core.bell.subscribe();
    let mut poll = SHORTEST_POLL;
    let mut look_at = Instant::now();
    let mut looked_at = look_at;
    // Whether something may be due that had no place or no credit when it was last looked: only
    // then are an outcome and new credit reasons to look again.
    let mut is_any_due = true;
    loop {
        tokio::select! {
            biased;
            () = ended.cancelled() => return Ok(()),
            Some(first) = births.recv() => {
                let Some(room) = room(responses, ended).await else {
                    return core.release(vec![first.lease()]).await;
                };
                let HandedOut { notifications, unreadable } = born(core, line, first, births);
                room.send(Ok(handed_over(notifications)));
                core.record_unreadable(&unreadable).await;
                continue;
            }
            _ = bell.changed() => poll = SHORTEST_POLL,
            () = core.clock.moved() => poll = SHORTEST_POLL,
            () = line.look.notified(), if is_any_due => {
                poll = SHORTEST_POLL;
                // A few places are filled with those that are about to be free as well.
                let by = looked_at + GATHERING;
                if by > Instant::now() && !line.account().is_half_free() {
                    look_at = look_at.min(by);
                    continue;
                }
            }
            () = tokio::time::sleep_until(look_at) => poll = (poll * 2).min(LONGEST_POLL),
        }
        loop {
            // Room first: a dispatcher that reads nothing gets no leases either.
            let Some(room) = room(responses, ended).await else {
                return Ok(());
            };
            let found = core.claim(line).await?;
            is_any_due = !matches!(found, Found::Nothing);
            let Found::Some(found, may_go_on) = found else {
                break;
            };
            poll = SHORTEST_POLL;
            room.send(Ok(handed_over(found.notifications)));
            core.record_unreadable(&found.unreadable).await;
            if !may_go_on {
                break;
            }
        }
        looked_at = Instant::now();
        look_at = looked_at + poll;
    }
}

/// A place in the queue of what is sent; none when the stream ends.
async fn room<'a>(
    responses: &'a Responses,
    ended: &CancellationToken,
) -> Option<mpsc::Permit<'a, Response>> {
    tokio::select! {
        room = responses.reserve() => room.ok(),
        () = ended.cancelled() => None,
    }
}

fn handed_over(notifications: Vec<proto::Notification>) -> proto::StreamResponse {
    proto::StreamResponse {
        notifications,
        ..proto::StreamResponse::default()
    }
}

/// What was born to a stream, as it is sent: one, and those that wait behind it.
fn born(
    core: &Core,
    line: &Line,
    first: Birth,
    births: &mut mpsc::UnboundedReceiver<Birth>,
) -> HandedOut {
    let leased_at = first.leased_at;
    let behind = std::iter::from_fn(|| births.try_recv().ok());
    let born: Vec<_> = std::iter::once(first)
        .chain(behind)
        .take(BATCH)
        .map(|birth| (birth.claimed, birth.lease_token))
        .collect();
    // The first has waited longest: none has less of its lease left.
    core.notifications(line, born, leased_at)
}
