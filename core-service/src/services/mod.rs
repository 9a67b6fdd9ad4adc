//! The gRPC services, a file or folder for each of `proto`: authenticate → parse → decide → store → reply.

mod addresses;
mod api_clients;
pub(crate) mod audit;
mod couriers;
mod deliveries;
mod delivery_changes;
pub(crate) mod events;
pub(crate) mod feed;
pub(crate) mod images;
mod incidents;
pub(crate) mod master_keys;
mod notifications;
mod personal_data;
mod price_lists;
mod retail_prices;
mod signing_keys;
mod stores;
pub(crate) mod tasks;
mod time_slots;
mod tokens;
pub(crate) mod tracking;
mod webhooks;
mod zones;

use std::sync::Arc;

use domain::id::ApiClientId;
use futures_util::{Stream, StreamExt as _, stream};
use geocoding::Gazetteer;
use process::clock::Clock;
use storage::Storage;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::TaskTracker;
use tonic::{Response, Status};

use self::{
    audit::RecordedReads, events::EventLog, feed::Feed, images::Uploads, tasks::TaskLog,
    tracking::Estimates,
};
use crate::{
    auth::{authenticator::Authenticator, caller::Caller, rate_limits::RateLimits},
    call_limits::{Concurrency, Entered},
    config::Config,
    error::Error,
    idempotency::Idempotency,
    images::ImageFolder,
    metrics::Metrics,
    notifications::Queue,
    planning::{definitions::Definitions, planner::Planner, quotas::DeliveryQuotas},
    secrets::secret_box::SecretBox,
    workers::key_ring::KeyRing,
};

/// The messages of a stream, and then the error with which the task that sends them ends. The error
/// has no place in the channel, which a caller that does not read has filled.
fn stream_until_end<M: Send + 'static, E: Into<Status> + Send + 'static>(
    messages: mpsc::Receiver<Result<M, Status>>,
    serving: JoinHandle<Result<(), E>>,
) -> impl Stream<Item = Result<M, Status>> + Send + 'static {
    let end = stream::once(serving).filter_map(async |ended| match ended {
        Ok(ended) => ended.err().map(|error| Err(error.into())),
        Err(panic) => Some(Err(Error::Bug(panic.to_string()).into())),
    });
    ReceiverStream::new(messages).chain(end)
}

/// Limit of the streams of events and tasks of a client at one core.
const MAX_WATCHES: usize = 32;

type Reply<M> = Result<Response<M>, Status>;

pub(crate) struct Services {
    pub(crate) config: Config,
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) key_ring: Arc<KeyRing>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) rate_limits: Arc<RateLimits>,
    pub(crate) idempotency: Idempotency,
    /// None if the operator has set none.
    pub(crate) quotas: Option<DeliveryQuotas>,
    pub(crate) planner: Planner,
    pub(crate) gazetteer: Arc<Gazetteer>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) event_feed: Arc<Feed<EventLog>>,
    pub(crate) task_feed: Arc<Feed<TaskLog>>,
    pub(crate) estimates: Estimates,
    /// None if the platform keeps no images.
    pub(crate) images: Option<Arc<ImageFolder>>,
    pub(crate) uploads: Uploads,
    /// The open streams of the feeds.
    pub(crate) watches: Arc<Concurrency<ApiClientId>>,
    pub(crate) recorded_reads: RecordedReads,
    /// Tracks the streams and reports, so that shutdown waits for them.
    pub(crate) task_tracker: TaskTracker,
    pub(crate) metrics: Metrics,
}

impl Services {
    fn definitions(&self) -> &Definitions {
        &self.planner.definitions
    }

    /// Counts one more stream of a client, until the result is dropped.
    fn open_watch(&self, caller: &Caller) -> Result<Entered<ApiClientId>, Error> {
        let entered = self.watches.enter(caller.id, MAX_WATCHES);
        let message =
            || format!("this client has {MAX_WATCHES} streams open at this core: close one first");
        entered.ok_or_else(|| Error::Quota("TOO_MANY_STREAMS", message()))
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::error::Unauthenticated;

    #[tokio::test]
    async fn a_stream_that_the_caller_has_stalled_ends_with_the_error_of_its_task() {
        let ended = |error: Result<(), Error>| async move {
            let (sender, messages) = mpsc::channel(1);
            sender.try_send(Ok(())).unwrap();
            let mut stream = Box::pin(stream_until_end(
                messages,
                tokio::spawn(async move {
                    let _responses = sender;
                    error
                }),
            ));
            assert!(stream.next().await.unwrap().is_ok());
            stream.next().await.map(|ended| ended.unwrap_err().code())
        };

        let disabled = Error::Unauthenticated(Unauthenticated::InvalidToken);
        assert_eq!(ended(Err(disabled)).await, Some(Code::Unauthenticated));
        assert_eq!(
            ended(Err(Error::ShuttingDown)).await,
            Some(Code::Unavailable)
        );
        assert_eq!(ended(Ok(())).await, None);
    }
}
