//! What goes down a stream by itself: what is born to it, and what is due when it is looked for.

use std::time::Duration;

use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    BATCH, GATHERING, Response, Responses,
    leases::{Found, HandedOut},
    streams::{Birth, Line},
};
use crate::{error::Error, grpc::Core};

/// How often the database is asked without a bell: soon after there was something, then ever
/// more rarely. It finds what other processes' bells announce, and what a schedule makes due.
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// Hands out what is born to a stream, and claims what is due, while there is credit.
pub(super) async fn hand_out(
    core: &Core,
    line: &Line,
    births: &mut mpsc::UnboundedReceiver<Birth>,
    responses: &Responses,
    ended: &CancellationToken,
) -> Result<(), Error> {
    let mut bell = core.bell.subscribe();
    let mut moves = core.clock.moves();
    let mut poll = SHORTEST_POLL;
    let mut look_at = Instant::now();
    let mut looked_at = look_at;
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
            () = moves.next() => poll = SHORTEST_POLL,
            () = line.look.notified(), if line.is_any_due() => {
                poll = SHORTEST_POLL;
                // A few places are filled with those that are about to be free as well.
                let by = looked_at + GATHERING;
                if by > Instant::now() && !line.account().is_half_free() {
                    look_at = look_at.min(by);
                    continue;
                }
            }
            () = line.look_soon.notified() => {
                poll = SHORTEST_POLL;
                look_at = look_at.min(looked_at + poll);
                continue;
            }
            () = tokio::time::sleep_until(look_at) => poll = (poll * 2).min(LONGEST_POLL),
        }
        loop {
            // Room first: a dispatcher that reads nothing gets no leases either.
            let Some(room) = room(responses, ended).await else {
                return Ok(());
            };
            // Before it looks: what is claimed with outcomes meanwhile counts.
            line.forget_due();
            let found = core.claim(line).await?;
            line.note(&found);
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
