//! Builds the components and services of a core, each with what it needs, and spawns its background
//! tasks.

use std::sync::Arc;

use proto::{
    addresses_server::AddressesServer, api_clients_server::ApiClientsServer,
    audit_server::AuditServer, couriers_server::CouriersServer,
    deliveries_server::DeliveriesServer, events_server::EventsServer, images_server::ImagesServer,
    incidents_server::IncidentsServer, master_keys_server::MasterKeysServer,
    notifications_server::NotificationsServer, personal_data_server::PersonalDataServer,
    price_lists_server::PriceListsServer, retail_prices_server::RetailPricesServer,
    signing_keys_server::SigningKeysServer, stores_server::StoresServer, tasks_server::TasksServer,
    time_slots_server::TimeSlotsServer, tokens_server::TokensServer,
    tracking_server::TrackingServer, webhooks_server::WebhooksServer, zones_server::ZonesServer,
};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::service::RoutesBuilder;

use crate::{
    auth::{
        authenticator::Authenticator,
        caller::{Authentication, MAX_CALLS},
        rate_limits::RateLimits,
    },
    call_limits::Concurrency,
    config::Config,
    idempotency::Idempotency,
    metrics::Metrics,
    notifications::{Queue, Streams, TestSends},
    planning::{definitions::Definitions, planner::Planner, quotas::DeliveryQuotas},
    services::{
        Services, audit::RecordedReads, events::EventLog, feed::Feed, images::Uploads,
        tasks::TaskLog, tracking::Estimates,
    },
    startup::Resources,
    workers::{
        image_cleanup::ImageCleanup,
        retention::{Retention, RetentionLease},
        sequencer::Sequencer,
    },
};

/// Limit of a request message, in bytes; valid messages stay far below it.
pub(crate) const MAX_MESSAGE_SIZE: usize = 4 * 1024 * 1024;

/// The signals and background tasks of a core's shutdown, in their order. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lifecycle {
    /// Cancelled at shutdown: ends the streams and the background tasks that run at intervals.
    pub(crate) shutdown: CancellationToken,
    /// The background tasks that end at shutdown, among them those of the streams.
    pub(crate) task_tracker: TaskTracker,
    /// Cancelled when all streams are closed, so that no more outcomes arrive.
    pub(crate) streams_closed: CancellationToken,
}

/// Builds the services, which it adds to the routes of a server, and spawns the background tasks. They
/// share components. Returns the middleware that authenticates the calls of the services, and the task
/// that releases leases: it runs until all streams are closed and what they left is released.
#[expect(
    clippy::too_many_lines,
    reason = "a list of components in the order of their dependencies"
)]
pub(crate) fn wire(
    resources: Resources,
    config: &Config,
    rate_limits: &Arc<RateLimits>,
    metrics: &Metrics,
    lifecycle: &Lifecycle,
    routes: &mut RoutesBuilder,
) -> (Authentication, JoinHandle<()>) {
    let Resources {
        storage,
        clock,
        secret_box,
        key_ring,
        geocoder,
        gazetteer,
        router,
        images,
        upstreams: _,
    } = resources;
    let events_sequenced = watch::Sender::new(());

    let authenticator = Arc::new(Authenticator::new(
        Arc::clone(&storage),
        Arc::clone(&key_ring),
        clock.clone(),
    ));
    let authentication = Authentication {
        authenticator: Arc::clone(&authenticator),
        rate_limits: Arc::clone(rate_limits),
        calls: Concurrency::new(),
        all_calls: Arc::new(Semaphore::new(MAX_CALLS)),
        shed: metrics.calls.shed.clone(),
    };
    let planner = Planner {
        definitions: Definitions::new(Arc::clone(&storage)),
        geocoder,
        required_precision: config.geocoding.address_precision,
        router,
        secret_box: Arc::clone(&secret_box),
        clock: clock.clone(),
        country: config.platform.country.clone(),
    };
    let idempotency = Idempotency {
        storage: Arc::clone(&storage),
        secret_box: Arc::clone(&secret_box),
        clock: clock.clone(),
    };

    let (streams, unsent_leases) = Streams::new();
    let streams = Arc::new(streams);
    let queue = Arc::new(Queue {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        secret_box: Arc::clone(&secret_box),
        streams: Arc::clone(&streams),
        test_sends: TestSends::new(streams),
        shutdown: lifecycle.shutdown.clone(),
        disable_after: config.webhooks.disable_after(),
        metrics: metrics.clone(),
    });
    let event_log = EventLog(Arc::clone(&storage));
    let event_feed = Arc::new(Feed::new(event_log, lifecycle.shutdown.clone()));
    let task_log = TaskLog(Arc::clone(&storage));
    let task_feed = Arc::new(Feed::new(task_log, lifecycle.shutdown.clone()));

    let sequencer = Sequencer {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        streams: Arc::clone(&queue.streams),
        events_sequenced: events_sequenced.clone(),
        sequenced: metrics.events_sequenced.clone(),
    };
    let retention = Retention {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        events: config.deliveries.event_retention,
        notifications: config.webhooks.notification_retention,
        deliveries: config.deliveries.delivery_retention,
        audit: config.platform.audit_retention,
        removal: config.deliveries.delivery_removal,
        lease: RetentionLease::new(),
    };
    let task_tracker = &lifecycle.task_tracker;
    task_tracker.spawn(Arc::clone(&event_feed).poll(events_sequenced.subscribe()));
    task_tracker.spawn(Arc::clone(&task_feed).poll(events_sequenced.subscribe()));
    task_tracker.spawn(sequencer.run(lifecycle.shutdown.clone()));
    task_tracker.spawn(retention.run(lifecycle.shutdown.clone()));
    if let Some(images) = &images {
        let cleanup = ImageCleanup::new(Arc::clone(&storage), Arc::clone(images));
        task_tracker.spawn(cleanup.run(lifecycle.shutdown.clone()));
    }
    task_tracker.spawn(Arc::clone(&queue).claim_due(lifecycle.shutdown.clone()));
    let release_leases = tokio::spawn(
        Arc::clone(&queue).release_leases(unsent_leases, lifecycle.streams_closed.clone()),
    );

    let services = Arc::new(Services {
        config: config.clone(),
        storage,
        clock,
        secret_box,
        key_ring,
        authenticator,
        rate_limits: Arc::clone(rate_limits),
        idempotency,
        quotas: DeliveryQuotas::of(config.deliveries),
        planner,
        gazetteer,
        queue,
        event_feed,
        task_feed,
        estimates: Estimates::default(),
        images,
        uploads: Uploads::new(),
        watches: Concurrency::new(),
        recorded_reads: RecordedReads::default(),
        task_tracker: lifecycle.task_tracker.clone(),
        metrics: metrics.clone(),
    });

    macro_rules! add {
        ($($server:ident)*) => {
            routes$(.add_service(
                $server::from_arc(Arc::clone(&services)).max_decoding_message_size(MAX_MESSAGE_SIZE),
            ))*
        };
    }
    add!(
        TokensServer AddressesServer CouriersServer StoresServer ApiClientsServer SigningKeysServer
        MasterKeysServer DeliveriesServer TasksServer RetailPricesServer PriceListsServer
        TimeSlotsServer WebhooksServer ZonesServer EventsServer PersonalDataServer
        NotificationsServer IncidentsServer ImagesServer TrackingServer AuditServer
    );
    (authentication, release_leases)
}
