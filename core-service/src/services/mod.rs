//! The gRPC services, a file or folder for each of `proto`: authenticate → parse → decide → store → reply.

mod addresses;
mod api_clients;
mod deliveries;
pub(crate) mod events;
pub(crate) mod master_keys;
pub(crate) mod notifications;
mod personal_data;
mod price_lists;
mod retail_prices;
mod signing_keys;
mod stores;
mod tasks;
mod time_slots;
mod tokens;
mod webhooks;
mod zones;

use std::sync::Arc;

use admission::Concurrency;
use domain::id::ApiClientId;
use geocoding::Gazetteer;
use process::clock::Clock;
use storage::Storage;
use tokio_util::task::TaskTracker;
use tonic::{Response, Status};

use self::events::EventFeed;
use crate::{
    auth::{authenticator::Authenticator, rate_limits::RateLimits},
    config::Config,
    idempotency::Idempotency,
    metrics::Metrics,
    notifications::{Streams, TestSends},
    planning::{definitions::Definitions, planner::Planner},
    secrets::secret_box::SecretBox,
    workers::key_ring::KeyRing,
};

type Reply<M> = Result<Response<M>, Status>;

/// The services, except that of notifications, and what they use.
pub(crate) struct Services {
    pub(crate) config: Config,
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) secret_box: Arc<SecretBox>,
    pub(crate) key_ring: Arc<KeyRing>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) rate_limits: Arc<RateLimits>,
    pub(crate) idempotency: Idempotency,
    pub(crate) planner: Planner,
    pub(crate) gazetteer: Arc<Gazetteer>,
    pub(crate) streams: Arc<Streams>,
    pub(crate) test_sends: Arc<TestSends>,
    pub(crate) feed: Arc<EventFeed>,
    /// The event streams of each client.
    pub(crate) event_streams: Arc<Concurrency<ApiClientId>>,
    /// Tracks the event streams, so that shutdown waits for them.
    pub(crate) task_tracker: TaskTracker,
    pub(crate) metrics: Metrics,
}

impl Services {
    fn definitions(&self) -> &Definitions {
        &self.planner.definitions
    }
}
