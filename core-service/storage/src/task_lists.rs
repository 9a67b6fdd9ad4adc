//! Lists of tasks of all stores on a day: those in couriers' lists of the day, and those in no list whose windows
//! touch it.

mod statements;
#[cfg(test)]
mod tests;

pub(crate) use self::statements::{LENGTH_CLASS, STATE};

use domain::{
    courier::Place,
    id::{CourierId, DeliveryId, StoreId},
    store::Store,
    task::{StateName, Task, TimeWindow},
};
use jiff::civil::Date;
use sea_orm::{Iterable as _, QueryResult, Value};

use super::{
    entity::{ByPosition as _, store, task},
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
    /// Only tasks of which an incident is open.
    pub has_incidents: bool,
}

impl Filter {
    /// Whether a task is listed: what the statements of [`read`] say.
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
        let is_overdue =
            self.include_overdue && !is_finished(state) && window.before <= self.day.after;
        let has_incidents = !self.has_incidents || task.open_incidents > 0;
        self.states.contains(&state)
            && is_of_courier
            && is_of_store
            && has_incidents
            && (is_of_day || is_overdue)
    }
}

const fn is_finished(state: StateName) -> bool {
    matches!(state, StateName::Done | StateName::Cancelled)
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

/// How a list is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the end of the window, then by id.
    End,
    /// The tasks in the lists of the day, by courier and place; then the others, by the end of the window.
    List,
}

/// The position of a task in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// In the list of a courier of the day.
    Place { courier_id: CourierId, place: u32 },
    /// Its instant is the end of the window.
    End(Cursor),
}

impl ListedTask {
    pub fn position(&self, filter: &Filter, order: Order) -> Position {
        let place = self.task.place.filter(|_| order == Order::List);
        match place.filter(|place| place.list.day == filter.list_day) {
            Some(Place { list, position }) => Position::Place {
                courier_id: list.courier_id,
                place: position,
            },
            None => Position::End(Cursor {
                created_at: self.task.window.before,
                id: self.task.id.0,
            }),
        }
    }
}

/// The next tasks after a position of a list in this order, and whether more follow.
pub async fn read(
    connection: &impl ConnectionTrait,
    filter: &Filter,
    order: Order,
    after: Option<Position>,
    size: u32,
) -> Result<(Vec<ListedTask>, bool), Error> {
    let limit = pages::limit(size);
    let mut tasks = Vec::new();
    if order == Order::List && !matches!(after, Some(Position::End(_))) {
        let statement = statements::in_lists(filter, after, limit);
        tasks = execute(connection, statement).await?;
    }
    let rest = limit.saturating_sub(tasks.len() as u64);
    if rest > 0 {
        let statement = statements::by_end(filter, order, after, rest);
        tasks.extend(execute(connection, statement).await?);
    }
    Ok(pages::cut(tasks, Start::Newest, size))
}

/// The tasks that a statement selects; none if there is no statement.
async fn execute(
    connection: &impl ConnectionTrait,
    statement: Option<(String, Vec<Value>)>,
) -> Result<Vec<ListedTask>, Error> {
    let Some((sql, values)) = statement else {
        return Ok(Vec::new());
    };
    let rows = rows::query(connection, &sql, values).await?;
    rows.iter().map(listed_task).collect()
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
