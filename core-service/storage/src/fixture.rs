//! A database for each test: a `SQLite` file, because `:memory:` is one database per connection,
//! or a database in the `PostgreSQL` cluster of the end-to-end tests.

#[path = "../../../tests/e2e/harness/postgres.rs"]
mod postgres_cluster;
#[path = "../../../tests/e2e/harness/postgres_programs.rs"]
mod postgres_programs;
#[path = "../../../tests/e2e/harness/prerequisites.rs"]
mod prerequisites;
#[expect(dead_code, reason = "the crash tests use the rest of it")]
#[path = "../../../tests/e2e/harness/resource_script.rs"]
mod resource_script;

use std::{sync::Arc, time::Duration};

use domain::{
    address::{Address, LatLng},
    brand::Brand,
    delivery::{Delivery, DistanceSource, Route},
    event::EventName,
    id::{AddressId, ApiClientId, DeliveryId, NotificationId, StoreId, TaskId, WebhookId},
    scheduling::ReceiverHealth,
    store::Store,
    task::{Actor, Package, Task, TaskDetails, TaskKind, TaskState, TimeWindow},
    webhook::{Webhook, WebhookKey},
    webhook_secrets::Secrets,
};
use iso_currency::Currency;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use process::metrics::Exposition;
use tempfile::TempDir;
use uuid::Uuid;

use super::{
    Changes, DEFAULT_DATABASE_CONNECTIONS, Error, Storage,
    delivery_insertion::{DefinitionVersions, NewDelivery},
    notifications::{self, ClaimedNotification, DeliveryChange, Lease},
    rows, webhooks,
};

impl Storage {
    /// Inserts a delivery without a response to store with it.
    pub async fn insert_delivery(&self, new: NewDelivery) -> Result<bool, Error> {
        self.insert_with_response(Arc::new(new), None).await
    }
}

/// A new `SQLite` database, deleted with the directory.
pub async fn sqlite() -> (TempDir, Arc<Storage>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(&directory).await;
    (directory, Arc::new(storage))
}

/// Like [`sqlite`], with another timeout for writes.
pub async fn sqlite_with_write_timeout(write_timeout: Duration) -> (TempDir, Arc<Storage>) {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::start(
        &url(&directory),
        DEFAULT_DATABASE_CONNECTIONS,
        write_timeout,
        false,
    )
    .await;
    (directory, Arc::new(storage.unwrap()))
}

/// A new `PostgreSQL` database; `None`, with a message on stderr, without a `PostgreSQL`
/// installation.
pub async fn postgres() -> Option<Arc<Storage>> {
    let url = postgres_url()?;
    Some(Arc::new(
        Storage::connect(&url, DEFAULT_DATABASE_CONNECTIONS)
            .await
            .unwrap(),
    ))
}

/// A new database of each kind, as in [`sqlite`] and [`postgres`].
pub async fn storages() -> (TempDir, Vec<Arc<Storage>>) {
    let (directory, sqlite) = sqlite().await;
    let storages = [Some(sqlite), postgres().await];
    (directory, storages.into_iter().flatten().collect())
}

/// A new, empty `PostgreSQL` database, as in [`postgres`].
pub fn postgres_url() -> Option<String> {
    postgres_cluster::create_database()
}

pub async fn open(directory: &TempDir) -> Storage {
    Storage::connect(&url(directory), DEFAULT_DATABASE_CONNECTIONS)
        .await
        .unwrap()
}

pub fn url(directory: &TempDir) -> String {
    let file = directory.path().join("delivery.sqlite");
    format!("sqlite://{}?mode=rwc", file.display())
}

pub fn store(name: &str) -> Store {
    Store {
        id: StoreId::new(),
        display_name: name.to_owned(),
        time_zone: TimeZone::get("Europe/Paris").unwrap(),
        currency: Currency::EUR,
        country: "FR".parse().unwrap(),
        default_address: None,
        service_area: None,
        refuses_unpriced: false,
        has_tracking: true,
        telephone: None,
        brand: Brand::default(),
        created_at: Timestamp::UNIX_EPOCH,
        disabled_at: None,
    }
}

/// Executes a statement, such as one that makes rows as no version of this program does.
pub async fn execute(storage: &Storage, sql: &'static str) {
    let write =
        storage.write(move |transaction| async move { rows::run(&transaction, sql, []).await });
    write.await.unwrap();
}

/// A delivery that was planned without definitions.
pub fn new_delivery(delivery: Delivery) -> NewDelivery {
    NewDelivery {
        delivery,
        versions: DefinitionVersions::default(),
    }
}

/// A delivery with a value in every field of its tasks.
pub fn delivery(store_id: StoreId, created_at: Timestamp) -> Delivery {
    let id = DeliveryId::new();
    let task = |kind, latitude, hours| Task {
        id: TaskId::new(),
        delivery_id: id,
        kind,
        state: TaskState::Todo,
        state_since: created_at,
        state_set_by: Actor::Shop,
        address: Address {
            id: AddressId::new(),
            street_address: "24 Rue de la Paix, 75002 Paris".to_owned(),
            lat_lng: LatLng::new(latitude, 2.331_249).unwrap(),
            place_name: Some("Book shop".to_owned()),
            contact_name: Some("Zoé".to_owned()),
            telephone: Some("+33612345678".to_owned()),
            description: Some("Second floor".to_owned()),
            postal_code: Some("75002".to_owned()),
            locality: Some("Paris".to_owned()),
            country: Some("FR".to_owned()),
        },
        window: TimeWindow {
            after: created_at,
            before: created_at + SignedDuration::from_hours(hours),
        },
        has_time_slot: true,
        details: TaskDetails {
            comments: "Ring".to_owned(),
            weight: Some(1200),
            packages: vec![Package {
                kind: "XL".to_owned(),
                quantity: 2,
            }],
            tags: vec!["fragile".to_owned()],
            metadata: [("order".to_owned(), "7".to_owned())].into(),
        },
        place: None,
        open_incidents: 0,
        images: Vec::new(),
        created_at,
        updated_at: created_at,
    };
    Delivery {
        id,
        store_id,
        pickup: task(TaskKind::Pickup, 48.869_512, 1),
        dropoff: task(TaskKind::Dropoff, 48.856_613, 2),
        route: Route {
            distance_meters: 1000,
            duration_seconds: 240,
            source: DistanceSource::Osrm,
        },
        price: None,
        retail_price: None,
        booking: None,
        created_at,
        external_reference: None,
        is_erased: false,
        tracking: None,
    }
}

/// A webhook for completed deliveries, at a host of its own.
pub fn webhook(created_at: Timestamp) -> Webhook {
    let id = WebhookId::new();
    Webhook {
        id,
        store_id: StoreId::new(),
        api_client_id: ApiClientId::new(),
        event: EventName::DeliveryCompleted.as_str().to_owned(),
        url: format!("https://{id}.example/hook"),
        host: format!("{id}.example:443"),
        created_at,
        overlap_ends_at: None,
        disabled: None,
        last_disabled_period: None,
    }
}

/// Events of a delivery that is not stored.
pub fn delivery_events(store_id: StoreId, events: &[EventName]) -> DeliveryChange {
    DeliveryChange {
        store_id,
        delivery_id: DeliveryId::new(),
        changes: Changes::default(),
        events: events.to_vec(),
    }
}

/// Inserts a webhook with notifications under leases of this duration. Returns the leases.
pub async fn leased_notifications(
    storage: &Storage,
    webhook: &Webhook,
    count: usize,
    lease: Duration,
) -> Vec<Lease> {
    let webhook = webhook.clone();
    let inserted = storage.write(move |transaction| async move {
        let now = webhook.created_at;
        let secrets = Secrets::new(b"encrypted".to_vec());
        webhooks::insert(&transaction, &webhook, &secrets).await?;
        let events = [webhook.event.parse().unwrap()];
        let mut leases = Vec::new();
        for _ in 0..count {
            let change = delivery_events(webhook.store_id, &events);
            let mut new = notifications::record_events(&transaction, change, now).await?;
            for new in &mut new {
                new.is_pre_leased = true;
                leases.push(new.leased.lease);
            }
            notifications::insert(&transaction, &new, lease, now).await?;
        }
        Ok::<_, Error>(leases)
    });
    let leases = inserted.await.unwrap();
    assert_eq!(leases.len(), count);
    leases
}

/// How many statements of this kind have succeeded.
pub async fn statements(storage: &Storage, operation: &str) -> usize {
    let mut exposition = Exposition::new();
    storage.register_metrics(exposition.registry());
    let rendered = exposition.render().await;
    let labels =
        format!("duration_seconds_count{{db_operation_name=\"{operation}\",error_type=\"\"}} ");
    let count = rendered.split_once(&labels).map(|(_, rest)| rest);
    let count = count.and_then(|rest| rest.lines().next());
    count.map_or(0, |count| count.parse().unwrap())
}

/// Waits until so many statements of `PostgreSQL` wait for a lock.
pub async fn wait_for_locks(storage: &Storage, count: i64) {
    let sql = "SELECT COUNT(*) FROM pg_stat_activity \
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let waiting = async {
        while rows::value::<i64>(storage.reader(), sql).await.unwrap() < count {
            tokio::task::yield_now().await;
        }
    };
    let waiting = tokio::time::timeout(Duration::from_mins(1), waiting).await;
    waiting.expect("statements should wait for locks within a minute");
}

/// A notification for tests that only pass it on.
pub fn claimed(webhook_id: WebhookId, receiver_health: ReceiverHealth) -> ClaimedNotification {
    ClaimedNotification {
        lease: Lease {
            id: NotificationId::new(),
            token: Uuid::now_v7(),
        },
        event: "delivery.completed".to_owned(),
        delivery_id: DeliveryId::new(),
        attempts: 0,
        receiver_health,
        traceparent: None,
        target: webhooks::Target {
            key: WebhookKey {
                store_id: StoreId::new(),
                webhook_id,
            },
            url: "https://shop.example/hook".to_owned(),
            host: "shop.example:443".to_owned(),
            secrets: Secrets::new(Vec::new()),
        },
    }
}
