//! Lists of tasks of all stores on a day, by the end of the window: those in couriers' lists of the day, and those
//! in no list whose windows touch it.

use domain::{
    id::{CourierId, DeliveryId, StoreId},
    store::Store,
    task::{StateName, Task, TimeWindow},
};
use jiff::civil::Date;
use sea_orm::{Iterable as _, QueryResult, Value};

use super::{
    entity::{ByPosition as _, instant::Instant, store, task},
    pages::{self, Cursor, Start},
};
use crate::prelude::*;

/// Which tasks are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub states: Vec<StateName>,
    /// The day's first instant, and that of the next day.
    pub day: TimeWindow,
    /// Whether tasks that ended before the day are listed too, unless they are done or cancelled.
    pub include_overdue: bool,
    /// The day of couriers' lists.
    pub list_day: Date,
    pub courier: CourierFilter,
    /// Of all stores if there is none.
    pub store_id: Option<StoreId>,
}

impl Filter {
    /// Whether a task is listed: what the statement of [`read`] says.
    pub fn has(&self, listed: &ListedTask) -> bool {
        let task = &listed.task;
        let is_of_store = self.store_id.is_none_or(|id| id == listed.store.id);
        let (state, window) = (task.state.name(), task.window);
        let is_of_courier = match self.courier {
            CourierFilter::Any => true,
            CourierFilter::None => task.place.is_none(),
            CourierFilter::One(id) => {
                let courier = task.place.map(|place| place.list.courier_id);
                courier == Some(id)
            }
        };
        let is_of_day = match task.place {
            Some(place) => place.list.day == self.list_day,
            None => window.before > self.day.after && window.after < self.day.before,
        };
        let is_open = !matches!(state, StateName::Done | StateName::Cancelled);
        let is_overdue = self.include_overdue && is_open && window.before <= self.day.after;
        self.states.contains(&state) && is_of_courier && is_of_store && (is_of_day || is_overdue)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CourierFilter {
    Any,
    None,
    One(CourierId),
}

#[derive(Clone, Debug)]
pub struct ListedTask {
    pub task: Task,
    /// The other task of its delivery.
    pub other: Task,
    pub store: Store,
    pub external_reference: Option<String>,
}

impl ListedTask {
    /// Its position in a list.
    pub fn cursor(&self) -> Cursor {
        Cursor {
            // By which this list is ordered.
            created_at: self.task.window.before,
            id: self.task.id.0,
        }
    }
}

/// As in the indexes.
const STATE: &str = "CASE WHEN completed_at IS NOT NULL THEN 'done' \
    WHEN cancelled_at IS NOT NULL THEN 'cancelled' ELSE COALESCE(state, 'todo') END";
const LENGTH_CLASS: &str = "CASE WHEN before - after <= 14400000000 THEN 0 \
    WHEN before - after <= 172800000000 THEN 1 WHEN before - after <= 1209600000000 THEN 2 ELSE 3 END";

/// The longest windows of the classes, in microseconds; the last class has longer ones.
const LONGEST: [i64; 3] = [14_400_000_000, 172_800_000_000, 1_209_600_000_000];

/// The next tasks after a position, and whether more follow.
pub async fn read(
    connection: &impl ConnectionTrait,
    filter: &Filter,
    after: Option<Cursor>,
    size: u32,
) -> Result<(Vec<ListedTask>, bool), Error> {
    let (sql, values) = statement(filter, after, pages::limit(size));
    let rows = rows::query(connection, &sql, values).await?;
    let tasks = rows.iter().map(listed_task).collect::<Result<_, _>>()?;
    Ok(pages::cut(tasks, Start::Newest, size))
}

/// Both tasks of deliveries, in no particular order, but those whose rows are not valid.
pub async fn of_deliveries(
    connection: &impl ConnectionTrait,
    deliveries: &[(StoreId, DeliveryId)],
) -> Result<Vec<ListedTask>, Error> {
    if deliveries.is_empty() {
        return Ok(Vec::new());
    }
    let keys = padded(deliveries.iter().copied());
    let sql = format!(
        "{} WHERE (tasks.store_id, tasks.delivery_id) IN (VALUES {})",
        listed("tasks"),
        rows::placeholders(&mut (1..), keys.len(), 2),
    );
    let values = keys
        .into_iter()
        .flat_map(|(store_id, id)| [store_id.0.into(), id.0.into()]);
    let rows = rows::query(connection, &sql, values.collect::<Vec<_>>()).await?;
    let valid = |row: &QueryResult| {
        let logged =
            |error: &Error| tracing::error!(%error, "a task is left out of what watchers get");
        listed_task(row).inspect_err(logged).ok()
    };
    Ok(rows.iter().filter_map(valid).collect())
}

fn listed_task(row: &QueryResult) -> Result<ListedTask, Error> {
    let task_columns = task::Column::iter().count();
    let store_columns = store::Column::iter().count();
    Ok(ListedTask {
        task: task::Model::at(row, 0)?.try_into()?,
        other: task::Model::at(row, task_columns)?.try_into()?,
        store: store::Model::at(row, 2 * task_columns)?.try_into()?,
        external_reference: row.try_get_by_index(2 * task_columns + store_columns)?,
    })
}

/// The beginning of a statement whose rows [`listed_task`] reads. `tasks` has the tasks, and may join other tables.
fn listed(tasks: &str) -> String {
    let columns: Vec<_> = rows::columns::<task::Entity>().collect();
    let others = columns
        .iter()
        .map(|column| column.replacen("tasks", "other", 1));
    let stores = rows::columns::<store::Entity>();
    let columns: Vec<_> = columns
        .iter()
        .cloned()
        .chain(others)
        .chain(stores)
        .collect();
    format!(
        "SELECT {}, deliveries.external_reference FROM {tasks} \
         JOIN tasks AS other ON other.store_id = tasks.store_id \
             AND other.delivery_id = tasks.delivery_id AND other.id <> tasks.id \
         JOIN stores ON stores.id = tasks.store_id \
         JOIN deliveries ON deliveries.store_id = tasks.store_id AND deliveries.id = tasks.delivery_id",
        columns.join(", "),
    )
}

/// A list of each state and class of lengths, of which the page is the first rows: each is read by an index, and
/// no further than the page may reach. The tasks of one store are found among those of all: an index of them would
/// cost each create two entries.
fn statement(filter: &Filter, after: Option<Cursor>, limit: u64) -> (String, Vec<Value>) {
    let mut values = Vec::<Value>::new();
    let mut parameter = |value: Value| {
        values.push(value);
        format!("${}", values.len())
    };
    let [day_start, day_end] = [filter.day.after, filter.day.before];
    let starts_before = parameter(Instant::from(day_end).into());
    let list_day = parameter(filter.list_day.to_string().into());
    let store = filter
        .store_id
        .map(|id| format!(" AND store_id = {}", parameter(id.0.into())));
    let store = store.unwrap_or_default();
    let mut parts = Vec::new();
    if filter.courier != CourierFilter::None {
        let courier = match filter.courier {
            CourierFilter::One(id) => format!("courier_id = {}", parameter(id.0.into())),
            _ => "courier_id IS NOT NULL".to_owned(),
        };
        let states = filter.states.iter().map(|state| state.as_str().into());
        let states: Vec<_> = states.map(&mut parameter).collect();
        let after = after.map_or((Timestamp::MIN, Uuid::nil()), |cursor| {
            (cursor.created_at, cursor.id)
        });
        let at = parameter(Instant::from(after.0).into());
        parts.push(format!(
            "SELECT * FROM (SELECT store_id, id, before FROM tasks WHERE {courier} AND list_day = {list_day}{store} \
             AND {STATE} IN ({}) AND (before, id) > ({at}, {}) ORDER BY before, id LIMIT {limit}) AS part",
            states.join(", "),
            parameter(after.1.into()),
        ));
    }
    for state in &filter.states {
        let is_open = !matches!(state, StateName::Done | StateName::Cancelled);
        let is_overdue = filter.include_overdue && is_open;
        if matches!(filter.courier, CourierFilter::One(_)) && !is_overdue {
            continue;
        }
        let first = if is_overdue {
            (Timestamp::MIN, Uuid::nil())
        } else {
            // A window that ends with the day before does not touch the day.
            (day_start, Uuid::max())
        };
        let after = after.map_or(first, |cursor| first.max((cursor.created_at, cursor.id)));
        let state = parameter(state.as_str().into());
        let (at, id) = (
            parameter(Instant::from(after.0).into()),
            parameter(after.1.into()),
        );
        let list = match filter.courier {
            CourierFilter::None => "courier_id IS NULL".to_owned(),
            CourierFilter::One(id) => {
                let courier = parameter(id.0.into());
                let overdue = parameter(Instant::from(day_start).into());
                format!("courier_id = {courier} AND before <= {overdue}")
            }
            CourierFilter::Any if is_overdue => {
                let overdue = parameter(Instant::from(day_start).into());
                format!("(courier_id IS NULL OR list_day = {list_day} OR before <= {overdue})")
            }
            CourierFilter::Any => format!("(courier_id IS NULL OR list_day = {list_day})"),
        };
        for class in 0..=LONGEST.len() {
            let longest = LONGEST.get(class).map(|longest| {
                let end = day_end.as_microsecond().saturating_add(*longest);
                format!("AND before < {} ", parameter(end.into()))
            });
            let longest = longest.unwrap_or_default();
            parts.push(format!(
                "SELECT * FROM (SELECT store_id, id, before FROM tasks WHERE {STATE} = {state} \
                 AND {LENGTH_CLASS} = {class} AND (before, id) > ({at}, {id}) {longest}AND {list}{store} \
                 AND after < {starts_before} ORDER BY before, id LIMIT {limit}) AS part"
            ));
        }
    }
    let page = format!(
        "(SELECT * FROM ({}) AS parts ORDER BY before, id LIMIT {limit}) AS page \
         JOIN tasks ON tasks.store_id = page.store_id AND tasks.id = page.id",
        // A task of the day's lists may be in two parts.
        parts.join(" UNION "),
    );
    let sql = format!("{} ORDER BY page.before, page.id", listed(&page));
    (sql, values)
}

#[cfg(test)]
mod tests {
    use domain::{
        delivery::Delivery,
        lifecycle::Command,
        task::{Actor, TaskKind},
    };
    use jiff::SignedDuration;
    use sea_orm::Statement;

    use super::*;
    use crate::{Storage, deliveries, fixture, stores};

    fn hours(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    /// All tasks of the second day since 1970.
    fn all() -> Filter {
        Filter {
            states: StateName::ALL.to_vec(),
            day: TimeWindow {
                after: hours(24),
                before: hours(48),
            },
            include_overdue: false,
            list_day: Date::constant(1970, 1, 2),
            courier: CourierFilter::Any,
            store_id: None,
        }
    }

    /// A delivery whose tasks have windows of these hours.
    fn delivery(store_id: StoreId, windows: [[i64; 2]; 2]) -> Delivery {
        let mut delivery = fixture::delivery(store_id, Timestamp::UNIX_EPOCH);
        let [pickup, dropoff] = windows.map(|[after, before]| TimeWindow {
            after: hours(after),
            before: hours(before),
        });
        (delivery.pickup.window, delivery.dropoff.window) = (pickup, dropoff);
        delivery
    }

    async fn insert(storage: &Storage, delivery: &Delivery) {
        let new = fixture::new_delivery(delivery.clone());
        assert!(storage.insert_delivery(new).await.unwrap());
    }

    async fn fail(storage: &Storage, before: &Delivery, kind: TaskKind) {
        let mut failed = before.clone();
        let command = Command::Fail("OTHER".parse().unwrap());
        let applied = failed.apply(kind, &command, Actor::Dispatch, hours(1));
        assert!(applied.unwrap().is_some());
        let changes = deliveries::changes(before, &failed, &[]).unwrap();
        let write = storage.write(move |transaction| async move {
            changes.make(&transaction).await?;
            Ok::<_, Error>(())
        });
        write.await.unwrap();
    }

    /// The hours of the listed windows, read in pages.
    async fn list(storage: &Storage, filter: &Filter, size: u32) -> Vec<[i64; 2]> {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = read(storage.reader(), filter, after, size).await;
            let (tasks, has_more) = page.unwrap();
            let hours = |instant: Timestamp| instant.as_second() / 3600;
            let windows = tasks.iter().map(|listed| listed.task.window);
            listed.extend(windows.map(|window| [hours(window.after), hours(window.before)]));
            if !has_more {
                return listed;
            }
            after = tasks.last().map(ListedTask::cursor);
        }
    }

    /// Fails unless the tasks that a filter has of these deliveries are those that it lists.
    async fn assert_lists_what_it_has(storage: &Storage, filter: &Filter, of: &[&Delivery]) {
        let keys: Vec<_> = of.iter().map(|of| (of.store_id, of.id)).collect();
        let mut expected = of_deliveries(storage.reader(), &keys).await.unwrap();
        assert_eq!(expected.len(), 2 * of.len());
        expected.retain(|listed| filter.has(listed));
        expected.sort_by_key(|listed| (listed.task.window.before, listed.task.id));
        let (listed, _) = read(storage.reader(), filter, None, 100).await.unwrap();
        let ids = |listed: Vec<ListedTask>| {
            let ids = listed.into_iter().map(|of| (of.task.id, of.other.id));
            ids.collect::<Vec<_>>()
        };
        assert_eq!(ids(listed), ids(expected), "{filter:?}");
    }

    #[tokio::test]
    async fn the_tasks_that_touch_a_day_are_listed_by_the_end_of_their_windows() {
        let (_directory, storages) = fixture::storages().await;
        for storage in storages {
            let [shop, other] = [fixture::store("A"), fixture::store("B")];
            for store in [&shop, &other] {
                stores::insert(storage.reader(), store).await.unwrap();
            }
            let touching = delivery(shop.id, [[30, 31], [40, 60]]);
            // The first ends with the day before, the second begins with the next one.
            let outside = delivery(shop.id, [[20, 24], [48, 49]]);
            let long = delivery(shop.id, [[0, 25], [0, 600]]);
            let overdue = delivery(other.id, [[1, 2], [30, 32]]);
            let deliveries = [&touching, &outside, &long, &overdue];
            for delivery in deliveries {
                insert(&storage, delivery).await;
            }
            fail(&storage, &overdue, TaskKind::Pickup).await;

            let day = [[0, 25], [30, 31], [30, 32], [40, 60], [0, 600]];
            for size in [1, 2, 100] {
                assert_eq!(list(&storage, &all(), size).await, day, "{size}");
            }
            let with_overdue = Filter {
                include_overdue: true,
                ..all()
            };
            let expected = [&[[1, 2], [20, 24]], &day[..]].concat();
            assert_eq!(list(&storage, &with_overdue, 2).await, expected);
            let failed = Filter {
                states: vec![StateName::Failed],
                ..with_overdue.clone()
            };
            assert_eq!(list(&storage, &failed, 2).await, [[1, 2]]);
            let of_store = |store: &Store| Filter {
                store_id: Some(store.id),
                ..with_overdue.clone()
            };
            assert_eq!(
                list(&storage, &of_store(&other), 1).await,
                [[1, 2], [30, 32]]
            );
            for filter in [&all(), &with_overdue, &failed, &of_store(&shop)] {
                for courier in [CourierFilter::Any, CourierFilter::None] {
                    let filter = Filter {
                        courier,
                        ..filter.clone()
                    };
                    assert_lists_what_it_has(&storage, &filter, &deliveries).await;
                }
            }
            let (tasks, _) = read(storage.reader(), &with_overdue, None, 9)
                .await
                .unwrap();
            let dropoff = tasks
                .iter()
                .find(|listed| listed.task.id == overdue.dropoff.id);
            let dropoff = dropoff.unwrap();
            assert_eq!(
                (dropoff.other.id, &dropoff.store.id),
                (overdue.pickup.id, &other.id)
            );
            assert!(dropoff.task.is_blocked_by(&dropoff.other));
        }
    }

    /// The plan of a page that is read in SQLite.
    async fn plan(filter: &Filter) -> String {
        let (_directory, storage) = fixture::sqlite().await;
        let cursor = Cursor {
            created_at: hours(30),
            id: Uuid::nil(),
        };
        let (sql, values) = statement(filter, Some(cursor), 31);
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let statement = Statement::from_sql_and_values(DbBackend::Sqlite, sql, values);
        let rows = storage.reader().query_all_raw(statement).await.unwrap();
        let details = rows.iter().map(|row| row.try_get("", "detail").unwrap());
        details.collect::<Vec<String>>().join("\n")
    }

    #[tokio::test]
    async fn each_state_of_a_list_is_found_by_an_index() {
        let of_store = Filter {
            store_id: Some(StoreId::new()),
            ..all()
        };
        for filter in [all(), of_store] {
            assert_is_by_index(&plan(&filter).await);
        }
    }

    fn assert_is_by_index(plan: &str) {
        let parts = StateName::ALL.len() * (LONGEST.len() + 1);
        let index = "tasks_by_end (<expr>=? AND <expr>=? AND (before,id)>(?,?)";
        assert_eq!(plan.matches(index).count(), parts, "{plan}");
        assert!(
            !plan.contains("SCAN tasks") && !plan.contains("SCAN other"),
            "{plan}"
        );
    }
}
