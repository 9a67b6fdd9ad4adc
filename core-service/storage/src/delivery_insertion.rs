//! Inserts deliveries, planned with definitions that a core has cached. With `PostgreSQL`, the
//! statement inserts nothing unless they are still the current ones, which saves the statements
//! that would read them. The only core of an `SQLite` file has the current ones.
//!
//! Deliveries that are created at the same time share a statement of `PostgreSQL`, and its flush: an
//! insert of 16 takes a third of the processor time of 16 inserts. The first are inserted at once;
//! those that arrive while [`MAX_STATEMENTS`] run are inserted together by the next. A response that is
//! stored under an idempotency key is inserted by the same statement, so that both exist or neither.

#[cfg(test)]
mod tests;

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use domain::delivery::Delivery;
use sea_orm::{ActiveModelTrait, Iterable, Value};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{Instant, timeout},
};

use super::{
    connections::Connections,
    entity::{AddressJson, MetadataJson, PackagesJson, TagsJson, delivery, idempotency_key, task},
    idempotency_keys::{self, NewResponse},
    storage::{WRITE_TIMEOUT, spawned, with_retries},
    time_slots::StoredTimeSlot,
};
use crate::prelude::*;

/// The numbers of deliveries that one statement of `PostgreSQL` can insert. They are few, because each of
/// its connections plans each of the statements.
const BATCH_SIZES: [usize; 5] = [1, 2, 4, 8, 16];

/// The statements for them.
static INSERT_IF_CURRENT: LazyLock<[String; BATCH_SIZES.len()]> =
    LazyLock::new(|| BATCH_SIZES.map(|count| insert_if_current(count, false)));

/// Those that store responses under idempotency keys, too.
static INSERT_WITH_RESPONSES: LazyLock<[String; BATCH_SIZES.len()]> =
    LazyLock::new(|| BATCH_SIZES.map(|count| insert_if_current(count, true)));

/// How many statements run at the same time. With more, fewer deliveries share one.
const MAX_STATEMENTS: usize = 2;

/// A statement that takes longer is not counted in [`MAX_STATEMENTS`] any more: only its connection may be
/// lost.
const MAX_DURATION: Duration = Duration::from_secs(1);

/// How long a statement waits for a transaction that stores one of its keys.
const LOCK_TIMEOUT: &str = "100ms";

/// The capacity of the queue. More insertions would time out before their statement.
const QUEUE_CAPACITY: usize = 4096;

/// Whether the definitions of a planned delivery are current.
const ARE_CURRENT: &str = "\
    (SELECT version FROM price_lists WHERE store_id = planned.store_id
        ORDER BY version DESC LIMIT 1) IS NOT DISTINCT FROM planned.price_list
    AND (SELECT definition FROM time_slots WHERE store_id = planned.store_id
        ORDER BY id LIMIT 1) IS NOT DISTINCT FROM planned.time_slot
    AND (planned.needs_no_zones OR (SELECT version FROM zone_sets
        ORDER BY version DESC LIMIT 1) IS NOT DISTINCT FROM planned.zones)";

/// Queues the change of a new delivery ([`task_changes`](super::task_changes)).
pub(super) const QUEUE_CREATION: &str =
    "INSERT INTO task_change_queue (store_id, delivery_id, is_creation) VALUES ($1, $2, true)";

/// The definitions of a store that a delivery was planned with.
#[derive(Clone, Debug, Default)]
pub struct DefinitionVersions {
    /// The version of the price list; `None` if the store had none.
    pub price_list: Option<i64>,
    /// The default time slot, which has no version; `None` if the store had none.
    pub time_slot: Option<Arc<StoredTimeSlot>>,
    /// The version of the zones (`None` before the first), if the plan depends on them.
    pub zones: Option<Option<i64>>,
}

impl DefinitionVersions {
    /// Adds a version of the zones that the plan depends on. Of two different ones, the older is
    /// not current, so it is the one to check.
    pub fn add_zones(&mut self, version: Option<i64>) {
        let oldest = self.zones.map_or(version, |known| known.min(version));
        self.zones = Some(oldest);
    }

    /// The values that [`ARE_CURRENT`] compares.
    fn values(&self) -> [Value; 4] {
        let time_slot = self.time_slot.as_ref();
        [
            self.price_list.into(),
            time_slot.map(|slot| slot.definition.clone()).into(),
            self.zones.is_none().into(),
            self.zones.flatten().into(),
        ]
    }
}

/// A new delivery, and the definitions that it was planned with.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    pub delivery: Delivery,
    pub versions: DefinitionVersions,
}

/// A delivery to insert, and the response to store with it.
#[derive(Clone, Debug)]
pub(super) struct Insertion {
    pub(super) new: Arc<NewDelivery>,
    pub(super) response: Option<NewResponse>,
}

/// Inserts a delivery with its tasks, and the response to store with it. Returns false, and inserts nothing, if a
/// definition has changed. Fails with a unique violation if the key of the response is not free.
pub async fn insert(
    connection: &impl ConnectionTrait,
    new: &NewDelivery,
    response: Option<&NewResponse>,
) -> Result<bool, Error> {
    if connection.get_database_backend() == DbBackend::Postgres {
        return insert_together(connection, &[(new, response)]).await;
    }
    if let Some(response) = response {
        idempotency_keys::insert(connection, response).await?;
    }
    rows::insert(connection, delivery_row(&new.delivery)).await?;
    let tasks = task::Entity::insert_many(task_rows(&new.delivery));
    tasks.exec_without_returning(connection).await?;
    let created = [new.delivery.store_id.0.into(), new.delivery.id.0.into()];
    rows::run(connection, QUEUE_CREATION, created).await?;
    Ok(true)
}

/// Inserts deliveries and responses in one statement of `PostgreSQL`. Their number is one of
/// [`BATCH_SIZES`]. Returns false, and inserts none, if a definition of one of them has changed.
async fn insert_together(
    connection: &impl ConnectionTrait,
    deliveries: &[(&NewDelivery, Option<&NewResponse>)],
) -> Result<bool, Error> {
    let rows = deliveries.iter().flat_map(|(new, _)| {
        let versions = new.versions.values().into_iter();
        versions.chain(values_of(delivery_row(&new.delivery)))
    });
    let task_rows = deliveries
        .iter()
        .flat_map(|(new, _)| task_rows(&new.delivery));
    let values = rows.chain(task_rows.flat_map(values_of));
    let responses = deliveries
        .iter()
        .flat_map(|(_, response)| idempotency_keys::values(*response));
    // The sizes are powers of two.
    let size = deliveries.len().ilog2() as usize;
    let inserted = if deliveries.iter().any(|(_, response)| response.is_some()) {
        rows::execute(
            connection,
            &INSERT_WITH_RESPONSES[size],
            values.chain(responses),
        )
        .await?
    } else {
        rows::execute(connection, &INSERT_IF_CURRENT[size], values).await?
    };
    Ok(inserted > 0)
}

/// The statement that inserts a number of deliveries. Its parameters: for each delivery its definitions
/// and its row, then for each delivery its tasks' rows, then for each its response, if they have any.
fn insert_if_current(count: usize, has_responses: bool) -> String {
    let deliveries = rows::names::<delivery::Entity>();
    let tasks = rows::names::<task::Entity>();
    let mut parameters = 1..;
    let delivery_rows = rows::placeholders(&mut parameters, count, 4 + deliveries.len());
    let task_rows = rows::placeholders(&mut parameters, 2 * count, tasks.len());
    let (deliveries, tasks) = (deliveries.join(", "), tasks.join(", "));
    let responses = if has_responses {
        let columns = rows::names::<idempotency_key::Entity>();
        let rows = rows::placeholders(&mut parameters, count, columns.len());
        let columns = columns.join(", ");
        // In the order of keys, so that two statements do not wait for each other. A transaction that stores
        // the same key delays the other deliveries little: after the timeout, each is inserted alone.
        format!(
            "bounded AS MATERIALIZED (SELECT set_config('lock_timeout', '{LOCK_TIMEOUT}', true)
            ), responses AS (
                INSERT INTO idempotency_keys ({columns})
                SELECT response.* FROM bounded, (VALUES {rows}) AS response ({columns})
                WHERE key_hash IS NOT NULL AND (SELECT are_current FROM checked)
                ORDER BY key_hash
            ), "
        )
    } else {
        String::new()
    };
    format!(
        "WITH planned (price_list, time_slot, needs_no_zones, zones, {deliveries}) AS (
            VALUES {delivery_rows}
        ), checked AS (
            SELECT bool_and({ARE_CURRENT}) AS are_current FROM planned
        ), {responses}inserted AS (
            INSERT INTO deliveries ({deliveries}) SELECT {deliveries} FROM planned
            WHERE (SELECT are_current FROM checked) RETURNING store_id, id
        ), queued AS (
            INSERT INTO task_change_queue (store_id, delivery_id, is_creation)
            SELECT store_id, id, true FROM inserted
        )
        INSERT INTO tasks ({tasks})
        SELECT task.* FROM (VALUES {task_rows}) AS task WHERE EXISTS (SELECT id FROM inserted)"
    )
}

fn delivery_row(delivery: &Delivery) -> delivery::ActiveModel {
    let (price, booking) = (delivery.price, delivery.booking);
    delivery::ActiveModel {
        store_id: Set(delivery.store_id.0),
        id: Set(delivery.id.0),
        distance_meters: Set(delivery.route.distance_meters.into()),
        duration_seconds: Set(delivery.route.duration_seconds.into()),
        distance_source: Set(delivery.route.source.as_str().to_owned()),
        price_net: Set(price.map(|price| price.net)),
        price_tax: Set(price.map(|price| price.tax)),
        price_currency: Set(price.map(|price| price.currency.code().to_owned())),
        retail_price: Set(delivery.retail_price.clone()),
        booked_time_slot_id: Set(booking.map(|booking| booking.time_slot_id.0)),
        booked_after: Set(booking.map(|booking| booking.window.after.into())),
        booked_before: Set(booking.map(|booking| booking.window.before.into())),
        created_at: Set(delivery.created_at.into()),
        cancelled_at: Set(None),
        external_reference: Set(delivery.external_reference.clone()),
        dropoff_before: Set(Some(delivery.dropoff.window.before.into())),
        completed_at: Set(None),
        erased_at: Set(None),
        state: Set(None),
        tracking_secret: Set(delivery.tracking.map(|link| link.secret.0.to_vec())),
        tracking_revoked_at: Set(None),
    }
}

fn task_rows(delivery: &Delivery) -> [task::ActiveModel; 2] {
    [&delivery.pickup, &delivery.dropoff].map(|task| {
        let details = task.details.clone();
        task::ActiveModel {
            store_id: Set(delivery.store_id.0),
            id: Set(task.id.0),
            delivery_id: Set(task.delivery_id.0),
            kind: Set(task.kind.as_str().to_owned()),
            address: Set(AddressJson(task.address.clone())),
            after: Set(task.window.after.into()),
            before: Set(task.window.before.into()),
            time_slot: Set(task.has_time_slot),
            comments: Set(details.comments),
            weight: Set(details.weight),
            packages: Set(PackagesJson(details.packages)),
            tags: Set(TagsJson(details.tags)),
            metadata: Set(MetadataJson(details.metadata)),
            created_at: Set(task.created_at.into()),
            updated_at: Set(task.updated_at.into()),
            completed_at: Set(None),
            cancelled_at: Set(None),
            state: Set(None),
            state_since: Set(None),
            state_set_by: Set(None),
            failure_reason: Set(None),
            courier_id: Set(None),
            list_day: Set(None),
            list_position: Set(None),
            open_incidents: Set(None),
            images: Set(None),
        }
    })
}

/// The values of a row, in the order of its columns.
fn values_of<A: ActiveModelTrait>(mut row: A) -> Vec<Value> {
    let columns = <A::Entity as EntityTrait>::Column::iter();
    columns
        .filter_map(|column| row.take(column).into_value())
        .collect()
}

/// The insertions that wait for a statement of `PostgreSQL`.
#[derive(Debug)]
pub(super) struct SharedInsertions {
    connections: Connections,
    queue: mpsc::Sender<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    insertion: Insertion,
    reply: oneshot::Sender<Reply>,
}

/// The result of an insertion, and how long its statement took.
type Reply = (Result<bool, Error>, Duration);

impl SharedInsertions {
    pub(super) fn start(connections: &Connections) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
        let queue = Arc::new(Mutex::new(receiver));
        for _ in 0..MAX_STATEMENTS {
            tokio::spawn(insert_waiting(Arc::clone(&queue), connections.clone()));
        }
        Self {
            connections: connections.clone(),
            queue: sender,
        }
    }

    /// Inserts a delivery, and returns when it is on disk. Returns false, and inserts nothing, if a
    /// definition has changed.
    pub(super) async fn insert(&self, insertion: Insertion) -> Result<bool, Error> {
        // It may wait for a transaction that inserts the same reference: others must not.
        if insertion.new.delivery.external_reference.is_some() {
            let connections = self.connections.clone();
            let insert = async move { insert_with_retries(&connections, &[&insertion]).await.0 };
            return spawned(insert).await;
        }
        let (reply, result) = oneshot::channel();
        self.queue.try_send(Waiting { insertion, reply })?;
        let result = timeout(WRITE_TIMEOUT, result).await;
        let (result, duration) = result
            .map_err(|_| Error::Timeout)?
            .map_err(|_| Error::WriterStopped)?;
        let metrics = self.connections.metrics();
        metrics.shared("WITH", duration, result.is_err());
        result
    }
}

/// Runs one statement after the other, until the storage is dropped.
async fn insert_waiting(queue: Arc<Mutex<mpsc::Receiver<Waiting>>>, connections: Connections) {
    let mut waiting: Vec<Waiting> = Vec::new();
    loop {
        {
            let mut queue = queue.lock().await;
            if queue.recv_many(&mut waiting, 1).await == 0 {
                return;
            }
            let others = batch_size(1 + queue.len()) - 1;
            queue.recv_many(&mut waiting, others).await;
        }
        loop {
            // A caller that timed out may have retried: its first insertion must not run.
            waiting.retain(|waiting| !waiting.reply.is_closed());
            if waiting.is_empty() {
                break;
            }
            let batch = waiting.drain(..batch_size(waiting.len())).collect();
            // Spawned, so that a panic fails only these.
            let inserted = tokio::spawn(insert_batch(connections.clone(), batch));
            let _ = timeout(MAX_DURATION, inserted).await;
        }
    }
}

/// How many of the waiting insertions share the next statement.
fn batch_size(waiting: usize) -> usize {
    let sizes = BATCH_SIZES.into_iter().filter(|size| *size <= waiting);
    sizes.max().unwrap_or_default()
}

/// Inserts deliveries together, or each alone if the statement inserts none because of one of them.
async fn insert_batch(connections: Connections, batch: Vec<Waiting>) {
    let insertions: Vec<_> = batch.iter().map(|waiting| &waiting.insertion).collect();
    let together = insert_with_retries(&connections, &insertions).await;
    let concerns_one = match &together.0 {
        Ok(are_current) => !are_current,
        Err(error) => error.is_rejected_value() || error.is_lock_timeout(),
    };
    let is_repeated = concerns_one && batch.len() > 1;
    for Waiting { insertion, reply } in batch {
        let result = if is_repeated {
            insert_with_retries(&connections, &[&insertion]).await
        } else {
            together.clone()
        };
        // The caller may have been cancelled.
        let _ = reply.send(result);
    }
}

async fn insert_with_retries(connections: &Connections, insertions: &[&Insertion]) -> Reply {
    let started = Instant::now();
    let rows = insertions.iter();
    let rows: Vec<_> = rows
        .map(|insertion| (&*insertion.new, insertion.response.as_ref()))
        .collect();
    let inserted = with_retries(|| insert_together(connections, &rows)).await;
    (inserted, started.elapsed())
}
