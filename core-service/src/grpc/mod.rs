//! The use cases: authenticate → parse → decide → store → reply. A file per proto service.

mod addresses;
mod api_clients;
mod caller;
mod definitions;
mod deliveries;
mod drafts;
mod events;
mod filters;
mod idempotency;
mod import;
mod in_force;
mod key_ring;
mod locating;
mod messages;
mod notifications;
mod offer;
mod pages;
mod planning;
mod price_lists;
mod promises;
mod reach;
mod retail_prices;
mod signing_keys;
mod stores;
mod tasks;
mod time_slots;
mod tokens;
mod webhook_notifications;
mod webhook_recovery;
mod webhook_secrets;
mod webhook_standing;
mod webhook_tests;
mod webhooks;
mod zones;

use std::sync::Arc;

use domain::{before::DateOrder, store::Store};
use geocoding::{Gazetteer, Geocoder};
use jiff::Zoned;
use process::clock::Clock;
use storage::Storage;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{config::Config, metrics::Metrics, routing::Router, vault::Vault};

pub(crate) use self::{
    caller::Callers,
    definitions::Definitions,
    events::Events,
    key_ring::KeyRing,
    notifications::{AttemptLog, Attempts, Notifications, Streams, Unsent, attempt_log, take_over},
    webhook_tests::WebhookTests,
};

/// Everything a use case may need.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) vault: Arc<Vault>,
    pub(crate) key_ring: KeyRing,
    pub(crate) geocoder: Box<dyn Geocoder>,
    /// What the geocoder looks in first, or not; imports replace it.
    pub(crate) gazetteer: Arc<Gazetteer>,
    pub(crate) router: Box<dyn Router>,
    pub(crate) egress: egress::Policy,
    pub(crate) callers: Callers,
    pub(crate) definitions: Definitions,
    /// Rung when notifications are owed that were not before.
    pub(crate) bell: watch::Sender<()>,
    /// The dispatchers' streams to this process.
    pub(crate) streams: Arc<Streams>,
    /// Who waits for what comes of a webhook's test.
    pub(crate) webhook_tests: WebhookTests,
    /// Takes attempts that were recorded.
    pub(crate) attempts: AttemptLog,
    pub(crate) metrics: Arc<Metrics>,
    /// Rung when something has happened that has no number yet.
    pub(crate) happened: watch::Sender<()>,
    /// Rung when events were numbered here.
    pub(crate) numbered: watch::Sender<()>,
    /// Ends the streams.
    pub(crate) shutdown: CancellationToken,
    /// Said when all streams have ended: nothing comes of them any more.
    pub(crate) streams_ended: CancellationToken,
    /// The loops of the streams.
    pub(crate) loops: TaskTracker,
}

impl Core {
    /// Now, in a store's zone.
    fn now_in(&self, store: &Store) -> Zoned {
        self.clock.now().to_zoned(store.time_zone.clone())
    }

    /// How a store's country writes dates.
    fn date_order(store: &Store) -> DateOrder {
        DateOrder::of_country(store.country.as_str())
    }
}
