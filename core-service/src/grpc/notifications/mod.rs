//! Notifications: the dispatchers' streams. Each has a loop of its own that claims while there
//! is credit, and records what comes back.

mod leases;

use std::{collections::HashMap, pin::Pin, sync::Arc, time::Duration};

use futures_util::Stream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming, metadata::MetadataMap};

use super::Core;
use crate::{
    domain::api_client::Scope,
    error::{Error, Unauthenticated},
};

/// How many are claimed by one transaction at most.
const BATCH: u32 = 128;

/// How often the database is asked without a bell: soon after there was something, then ever
/// more rarely. It finds what other processes' bells announce, and what a schedule makes due.
const SHORTEST_POLL: Duration = Duration::from_millis(50);
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// How often it is asked whether a stream's client still may hold it.
const PERMISSION_CHECK: Duration = Duration::from_secs(30);

type Responses = mpsc::Sender<Result<proto::StreamResponse, Status>>;

/// So that the stream type can be named without its generics.
type ResponseStream =
    Pin<Box<dyn Stream<Item = Result<proto::StreamResponse, Status>> + Send + 'static>>;

/// [`Core`] behind the `Arc` that its streams' loops share.
pub(crate) struct Notifications(pub(crate) Arc<Core>);

#[tonic::async_trait]
impl proto::notifications_server::Notifications for Notifications {
    type StreamStream = ResponseStream;

    async fn stream(
        &self,
        request: Request<Streaming<proto::StreamRequest>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let core = Arc::clone(&self.0);
        let token = request.metadata().clone();
        core.authenticate(&token)
            .await?
            .require(Scope::Notifications)?;

        let (responses, stream) = mpsc::channel(4);
        let requests = request.into_inner();
        self.0.loops.spawn(async move {
            let mut permitted = std::pin::pin!(still_permitted(&core, &token));
            let served = serve(&core, requests, &responses, permitted.as_mut()).await;
            if let Err(error) = served {
                // A dispatcher that has gone away hears nothing; its leases end by themselves.
                let _ = responses.try_send(Err(error.into()));
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }
}

/// Ends when the token's client may hold a stream no more; that its token has expired since the
/// stream was opened does not matter.
async fn still_permitted(core: &Core, token: &MetadataMap) -> Result<(), Error> {
    loop {
        tokio::time::sleep(PERMISSION_CHECK).await;
        match core.authenticate(token).await {
            Ok(caller) => caller.require(Scope::Notifications)?,
            Err(Error::Unauthenticated(Unauthenticated::ExpiredToken)) => {}
            Err(error @ Error::Unauthenticated(_)) => return Err(error),
            // The database may be away for a while; that takes nothing from anybody.
            Err(_) => {}
        }
    }
}

/// Serves a stream until its dispatcher half-closes or goes away, its client may hold it no
/// more, or core shuts down. It ends between claims, never within one: what is leased is sent.
async fn serve(
    core: &Core,
    mut requests: Streaming<proto::StreamRequest>,
    responses: &Responses,
    mut permitted: Pin<&mut (dyn Future<Output = Result<(), Error>> + Send)>,
) -> Result<(), Error> {
    let mut bell = core.bell.subscribe();
    let mut credit: u32 = 0;
    // What was handed out and not reported, with its lease.
    let mut held = HashMap::new();
    let mut poll = SHORTEST_POLL;
    loop {
        tokio::select! {
            // What is done is recorded before more is handed out.
            biased;
            request = requests.message() => {
                let Ok(request) = request else {
                    return Ok(());
                };
                let Some(request) = request else {
                    return Ok(());
                };
                credit = credit.saturating_add(request.credit);
                if !request.outcomes.is_empty() {
                    for outcome in &request.outcomes {
                        if held.get(&outcome.name) == Some(&outcome.lease_token) {
                            held.remove(&outcome.name);
                        }
                    }
                    let recorded = core.record(&request.outcomes).await?;
                    let response = proto::StreamResponse {
                        recorded,
                        ..proto::StreamResponse::default()
                    };
                    let sent = tokio::select! {
                        sent = responses.send(Ok(response)) => sent,
                        () = core.shutdown.cancelled() => return Ok(()),
                    };
                    if sent.is_err() {
                        return Ok(());
                    }
                }
                if request.finished {
                    credit = 0;
                    core.release(std::mem::take(&mut held)).await?;
                }
                poll = SHORTEST_POLL;
            }
            () = core.shutdown.cancelled() => return Ok(()),
            refused = &mut permitted => return refused,
            _ = bell.changed(), if credit > 0 => poll = SHORTEST_POLL,
            () = core.clock.moved(), if credit > 0 => poll = SHORTEST_POLL,
            () = tokio::time::sleep(poll), if credit > 0 => {
                poll = (poll * 2).min(LONGEST_POLL);
            }
        }
        while credit > 0 && !core.shutdown.is_cancelled() {
            // Room first: a dispatcher that reads nothing gets no leases either.
            let room = tokio::select! {
                room = responses.reserve() => room,
                () = core.shutdown.cancelled() => return Ok(()),
            };
            let Ok(room) = room else {
                return Ok(());
            };
            let Some(claimed) = core.claim(credit.min(BATCH)).await? else {
                break;
            };
            let count = u32::try_from(claimed.len()).unwrap_or(u32::MAX);
            credit = credit.saturating_sub(count);
            for notification in &claimed {
                held.insert(notification.name.clone(), notification.lease_token.clone());
            }
            poll = SHORTEST_POLL;
            let response = proto::StreamResponse {
                notifications: claimed,
                ..proto::StreamResponse::default()
            };
            room.send(Ok(response));
        }
    }
}
