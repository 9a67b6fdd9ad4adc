//! What comes up a stream: credit, and outcomes, which are recorded together; what they free is
//! filled with them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use super::{Responses, gathering::Gathered, leases::Found, streams::Line};
use crate::{
    error::Error,
    grpc::{Core, webhook_tests::TestLine},
};

/// Tells what came of tests, records outcomes and takes credit, until the dispatcher half-closes or
/// goes away.
pub(super) async fn take_back(
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
        // One more at most is read after the end, however many have come.
        let is_over = next.is_none() || ended.is_cancelled();
        let mut request = next.unwrap_or_default();
        tests.tell(std::mem::take(&mut request.test_outcomes));
        gathered.add(&request, line);
        let is_last = is_over || request.finished;
        if (is_last || gathered.is_complete(line))
            && !record(
                core,
                (line, is_last),
                std::mem::take(&mut gathered),
                responses,
                ended,
            )
            .await?
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

/// Records outcomes and confirms them, with as many more to send if they are due; whether the
/// dispatcher still hears.
async fn record(
    core: &Core,
    (line, is_last): (&Line, bool),
    gathered: Gathered,
    responses: &Responses,
    ended: &CancellationToken,
) -> Result<bool, Error> {
    if gathered.confirmations.is_empty() {
        return Ok(true);
    }
    // Room first: a dispatcher that reads nothing gets no leases either.
    let room = responses.try_reserve().ok();
    let found = if room.is_some() && line.is_filling() && !is_last {
        Some(core.record_and_claim(&gathered.reports, line).await?)
    } else {
        core.record(&gathered.reports).await?;
        None
    };
    if let Some(found) = &found {
        line.note_filling(matches!(found, Found::Some(..)));
    }
    let mut response = proto::StreamResponse {
        recorded: gathered.confirmations,
        ..proto::StreamResponse::default()
    };
    let mut unreadable = Vec::new();
    if let Some(Found::Some(handed_out, may_go_on)) = found {
        response.notifications = handed_out.notifications;
        unreadable = handed_out.unreadable;
        if may_go_on {
            line.look.notify_one();
        }
        line.look_soon.notify_one();
    } else {
        // Of those that had no place free, some now may have.
        line.look.notify_one();
    }
    let Some(room) = room else {
        return tokio::select! {
            biased;
            sent = responses.send(Ok(response)) => Ok(sent.is_ok()),
            () = ended.cancelled() => Ok(false),
        };
    };
    room.send(Ok(response));
    core.record_unreadable(&unreadable).await;
    Ok(true)
}
