//! Builds the components and services of a core, each with what it needs, and spawns its background
//! tasks.

use std::sync::Arc;

use admission::Concurrency;
use proto::{
    addresses_server::AddressesServer, api_clients_server::ApiClientsServer,
    deliveries_server::DeliveriesServer, events_server::EventsServer,
    master_keys_server::MasterKeysServer, notifications_server::NotificationsServer,
    personal_data_server::PersonalDataServer, price_lists_server::PriceListsServer,
    retail_prices_server::RetailPricesServer, signing_keys_server::SigningKeysServer,
    stores_server::StoresServer, tasks_server::TasksServer, time_slots_server::TimeSlotsServer,
    tokens_server::TokensServer, webhooks_server::WebhooksServer, zones_server::ZonesServer,
};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tonic::service::RoutesBuilder;

use crate::{
    auth::{authentication::Authentication, authenticator::Authenticator, rate_limits::RateLimits},
    config::Config,
    idempotency::Idempotency,
    metrics::Metrics,
    notifications::{Queue, StreamServer, Streams, TestSends},
    planning::{
        address_geocoder::AddressGeocoder, definitions::Definitions, planner::Planner,
        quotas::DeliveryQuotas, quotes::Quotes,
    },
    services::{
        addresses::Addresses,
        api_clients::ApiClients,
        deliveries::{Deliveries, creation::DeliveryCreator},
        events::{EventFeed, Events},
        master_keys::MasterKeys,
        notifications::Notifications,
        personal_data::PersonalData,
        price_lists::PriceLists,
        retail_prices::RetailPrices,
        signing_keys::SigningKeys,
        stores::Stores,
        tasks::Tasks,
        time_slots::TimeSlots,
        tokens::Tokens,
        webhooks::Webhooks,
        zones::Zones,
    },
    startup::Resources,
    workers::{retention::Retention, sequencer::Sequencer},
};

/// Limit of a request message, in bytes; valid messages stay far below it.
const MAX_MESSAGE_SIZE: usize = 4 * 1024 * 1024;

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
        upstreams: _,
    } = resources;
    let platform = &config.platform;
    let events_sequenced = watch::Sender::new(());

    let authenticator = Arc::new(Authenticator::new(
        Arc::clone(&storage),
        Arc::clone(&key_ring),
        clock.clone(),
    ));
    let idempotency = Arc::new(Idempotency {
        storage: Arc::clone(&storage),
        secret_box: Arc::clone(&secret_box),
        clock: clock.clone(),
    });

    let definitions = Arc::new(Definitions::new(Arc::clone(&storage)));
    let geocoder = Arc::new(AddressGeocoder {
        geocoder,
        required_precision: config.geocoding.address_precision,
        country: platform.country.clone(),
        definitions: Arc::clone(&definitions),
    });
    let quotes = Arc::new(Quotes {
        secret_box: Arc::clone(&secret_box),
        clock: clock.clone(),
    });
    let planner = Arc::new(Planner {
        quotes: Arc::clone(&quotes),
        definitions: Arc::clone(&definitions),
        geocoder: Arc::clone(&geocoder),
        router,
        clock: clock.clone(),
        country: platform.country.clone(),
    });

    let (streams, unsent_leases) = Streams::new();
    let streams = Arc::new(streams);
    let queue = Arc::new(Queue {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        secret_box: Arc::clone(&secret_box),
        streams: Arc::clone(&streams),
        disable_after: config.webhooks.disable_after(),
        metrics: metrics.clone(),
    });
    let test_sends = Arc::new(TestSends::new(Arc::clone(&streams)));
    let stream_server = Arc::new(StreamServer {
        queue: Arc::clone(&queue),
        test_sends: Arc::clone(&test_sends),
        shutdown: lifecycle.shutdown.clone(),
    });
    let feed = Arc::new(EventFeed::new(
        Arc::clone(&storage),
        lifecycle.shutdown.clone(),
    ));

    let sequencer = Sequencer {
        storage: Arc::clone(&storage),
        events_written: streams.events_written.clone(),
        events_sequenced: events_sequenced.clone(),
        sequenced: metrics.events_sequenced.clone(),
    };
    let retention = Retention {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        events: config.event_retention,
        notifications: config.webhooks.notification_retention,
        deliveries: config.deliveries.delivery_retention,
    };
    let task_tracker = &lifecycle.task_tracker;
    task_tracker.spawn(Arc::clone(&feed).poll(events_sequenced.subscribe()));
    task_tracker.spawn(sequencer.run(lifecycle.shutdown.clone()));
    task_tracker.spawn(retention.run(lifecycle.shutdown.clone()));
    let release_leases = queue.release_leases(unsent_leases, lifecycle.streams_closed.clone());
    let release_leases = tokio::spawn(release_leases);

    let authentication = Authentication {
        authenticator: Arc::clone(&authenticator),
        rate_limits: Arc::clone(rate_limits),
        calls: Concurrency::new(),
    };
    let addresses = Addresses {
        storage: Arc::clone(&storage),
        definitions: Arc::clone(&definitions),
        geocoder: Arc::clone(&geocoder),
        gazetteer,
        country: platform.country.clone(),
    };
    let api_clients = ApiClients {
        authenticator: Arc::clone(&authenticator),
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        geocoder: Arc::clone(&geocoder),
    };
    let creator = DeliveryCreator {
        storage: Arc::clone(&storage),
        idempotency: Arc::clone(&idempotency),
        planner: Arc::clone(&planner),
        quotas: DeliveryQuotas::new(config.deliveries),
        metrics: metrics.clone(),
    };
    let deliveries = Deliveries {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        creator,
        streams: Arc::clone(&streams),
        metrics: metrics.clone(),
    };
    let events = Events {
        authenticator: Arc::clone(&authenticator),
        storage: Arc::clone(&storage),
        feed,
        streams: Concurrency::new(),
        task_tracker: lifecycle.task_tracker.clone(),
    };
    let master_keys = MasterKeys {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        secret_box: Arc::clone(&secret_box),
        idempotency: Arc::clone(&idempotency),
    };
    let notifications = Notifications {
        authenticator: Arc::clone(&authenticator),
        stream_server,
        task_tracker: lifecycle.task_tracker.clone(),
    };
    let personal_data = PersonalData {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        country: platform.country.clone(),
    };
    let price_lists = PriceLists {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        definitions: Arc::clone(&definitions),
        planner: Arc::clone(&planner),
    };
    let retail_prices = RetailPrices {
        storage: Arc::clone(&storage),
        planner,
        quotes,
    };
    let signing_keys = SigningKeys {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        key_ring: Arc::clone(&key_ring),
        authenticator: Arc::clone(&authenticator),
    };
    let stores = Stores {
        authenticator: Arc::clone(&authenticator),
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        definitions: Arc::clone(&definitions),
        geocoder,
        time_zone: platform.timezone.clone(),
        country: platform.country.clone(),
    };
    let tasks = Tasks {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        streams: Arc::clone(&streams),
        metrics: metrics.clone(),
    };
    let time_slots = TimeSlots {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        definitions: Arc::clone(&definitions),
        locale: platform.locale.clone(),
        country: platform.country.clone(),
    };
    let tokens = Tokens {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        key_ring,
        rate_limits: Arc::clone(rate_limits),
        lifetime: config.token_lifetime_seconds(),
    };
    let webhooks = Webhooks {
        storage: Arc::clone(&storage),
        clock: clock.clone(),
        idempotency: Arc::clone(&idempotency),
        secret_box,
        streams,
        test_sends,
        egress: config.egress.clone(),
        notification_retention: config.webhooks.notification_retention,
    };
    let zones = Zones {
        storage,
        clock,
        idempotency,
        definitions,
    };

    macro_rules! server {
        ($server:ident, $service:ident) => {
            $server::new($service).max_decoding_message_size(MAX_MESSAGE_SIZE)
        };
    }
    routes
        .add_service(server!(TokensServer, tokens))
        .add_service(server!(AddressesServer, addresses))
        .add_service(server!(StoresServer, stores))
        .add_service(server!(ApiClientsServer, api_clients))
        .add_service(server!(SigningKeysServer, signing_keys))
        .add_service(server!(MasterKeysServer, master_keys))
        .add_service(server!(DeliveriesServer, deliveries))
        .add_service(server!(TasksServer, tasks))
        .add_service(server!(RetailPricesServer, retail_prices))
        .add_service(server!(PriceListsServer, price_lists))
        .add_service(server!(TimeSlotsServer, time_slots))
        .add_service(server!(WebhooksServer, webhooks))
        .add_service(server!(ZonesServer, zones))
        .add_service(server!(EventsServer, events))
        .add_service(server!(PersonalDataServer, personal_data))
        .add_service(server!(NotificationsServer, notifications));
    (authentication, release_leases)
}
