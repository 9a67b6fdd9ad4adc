//! The statements of lists of tasks.

use domain::task::StateName;
use sea_orm::Value;

use super::{CourierFilter, Filter, Order, Position, is_finished, listed};
use crate::{entity::Instant, pages::Cursor, prelude::*};

/// As in the indexes.
pub(crate) const STATE: &str = "CASE WHEN completed_at IS NOT NULL THEN 'done' \
    WHEN cancelled_at IS NOT NULL THEN 'cancelled' ELSE COALESCE(state, 'todo') END";
pub(crate) const LENGTH_CLASS: &str = "CASE WHEN before - after <= 14400000000 THEN 0 \
    WHEN before - after <= 172800000000 THEN 1 WHEN before - after <= 1209600000000 THEN 2 ELSE 3 END";
/// Of tasks with open incidents: those that are neither done nor cancelled together, the others by the day of their
/// list, so that incidents which nobody has closed are read for one day only.
const INCIDENT_DAY: &str = "CASE WHEN completed_at IS NULL AND cancelled_at IS NULL THEN 'open' \
    ELSE COALESCE(list_day, 'none') END";

/// The longest windows of the classes, in microseconds; the last class has longer ones.
pub(super) const LONGEST: [i64; 3] = [14_400_000_000, 172_800_000_000, 1_209_600_000_000];

/// Before all tasks.
const FIRST: Cursor = Cursor {
    created_at: Timestamp::MIN,
    id: Uuid::nil(),
};

type Statement = (String, Vec<Value>);

/// The tasks in the lists of the day, by courier and place, after a place. The index finds the lists: those that a page
/// begins and ends with are read whole. `None` if there can be no such tasks.
pub(super) fn in_lists(filter: &Filter, after: Option<Position>, limit: u64) -> Option<Statement> {
    if filter.courier == CourierFilter::None {
        return None;
    }
    let (after, place) = match after {
        Some(Position::Place { courier_id, place }) => (courier_id.0, i64::from(place)),
        _ => (Uuid::nil(), -1),
    };
    let mut values = Values::default();
    let (courier, store) = (values.courier(filter), values.store(filter));
    let (list_day, states) = (values.list_day(filter), values.states(&filter.states));
    let (after, place) = (values.add(after), values.add(place));
    let day = if filter.has_incidents {
        // Not by the index of lists, which has all tasks of the day.
        format!(
            "open_incidents IS NOT NULL AND {INCIDENT_DAY} IN ('open', {list_day}) \
             AND list_day || '' = {list_day}"
        )
    } else {
        format!("list_day = {list_day}")
    };
    let page = format!(
        "(SELECT store_id, id, courier_id, list_position FROM tasks WHERE {courier} AND {day}{store} \
         AND {STATE} IN ({states}) AND (courier_id, list_position) > ({after}, {place}) \
         ORDER BY courier_id, list_position LIMIT {limit}) AS page \
         JOIN tasks ON tasks.store_id = page.store_id AND tasks.id = page.id"
    );
    let order = "ORDER BY page.courier_id, page.list_position";
    Some((format!("{} {order}", listed(&page)), values.0))
}

/// The tasks of a list by the end of the window, after one of them; not those in the lists of the day if these are
/// ordered by list. Of several parts, of which the page is the first rows: each is read by an index, and no further
/// than the page may reach. The tasks of one store are found among those of all: an index of them would cost each
/// create two entries. `None` if there can be no such tasks.
pub(super) fn by_end(
    filter: &Filter,
    order: Order,
    after: Option<Position>,
    limit: u64,
) -> Option<Statement> {
    let mut parts = Parts {
        filter,
        with_lists: order == Order::End,
        after: match after {
            Some(Position::End(cursor)) => Some(cursor),
            _ => None,
        },
        limit,
        values: Values::default(),
        sql: Vec::new(),
    };
    if filter.has_incidents {
        parts.add_unfinished_incidents();
        parts.add_finished_incidents();
    } else {
        parts.add_lists();
        if parts.has_courier() {
            parts.add_overdue_of_courier();
        } else {
            for state in &filter.states {
                parts.add_state(*state);
            }
        }
    }
    if parts.sql.is_empty() {
        return None;
    }
    let page = format!(
        "(SELECT * FROM ({}) AS parts ORDER BY before, id LIMIT {limit}) AS page \
         JOIN tasks ON tasks.store_id = page.store_id AND tasks.id = page.id",
        // A task of the day's lists may be in two parts.
        parts.sql.join(" UNION "),
    );
    let sql = format!("{} ORDER BY page.before, page.id", listed(&page));
    Some((sql, parts.values.0))
}

/// The values of a statement, each with its placeholder.
#[derive(Default)]
struct Values(Vec<Value>);

impl Values {
    fn add(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("${}", self.0.len())
    }

    fn instant(&mut self, instant: Timestamp) -> String {
        self.add(Instant::from(instant))
    }

    fn list_day(&mut self, filter: &Filter) -> String {
        self.add(filter.list_day.to_string())
    }

    fn states(&mut self, states: &[StateName]) -> String {
        let states = states.iter().map(|state| self.add(state.as_str()));
        states.collect::<Vec<_>>().join(", ")
    }

    fn store(&mut self, filter: &Filter) -> String {
        let store = filter.store_id;
        let store = store.map(|id| format!(" AND store_id = {}", self.add(id.0)));
        store.unwrap_or_default()
    }

    /// Of a task in a list.
    fn courier(&mut self, filter: &Filter) -> String {
        match filter.courier {
            CourierFilter::One(id) => format!("courier_id = {}", self.add(id.0)),
            _ => "courier_id IS NOT NULL".to_owned(),
        }
    }
}

/// The parts of a statement.
struct Parts<'a> {
    filter: &'a Filter,
    /// Whether the tasks in the lists of the day are among them.
    with_lists: bool,
    after: Option<Cursor>,
    limit: u64,
    values: Values,
    sql: Vec<String>,
}

impl Parts<'_> {
    /// Adds the tasks for which a condition holds, after a position.
    fn add(&mut self, condition: &str, first: Cursor) {
        let key = |cursor: &Cursor| (cursor.created_at, cursor.id);
        let after = self.after.filter(|after| key(after) > key(&first));
        let after = after.unwrap_or(first);
        let (at, id) = (
            self.values.instant(after.created_at),
            self.values.add(after.id),
        );
        let (store, limit) = (self.values.store(self.filter), self.limit);
        self.sql.push(format!(
            "SELECT * FROM (SELECT store_id, id, before FROM tasks WHERE {condition} \
             AND (before, id) > ({at}, {id}){store} ORDER BY before, id LIMIT {limit}) AS part"
        ));
    }

    /// Before the windows that touch the day: one that ends with the day before does not.
    fn start_of_day(&self) -> Cursor {
        Cursor {
            created_at: self.filter.day.after,
            id: Uuid::max(),
        }
    }

    fn has_courier(&self) -> bool {
        matches!(self.filter.courier, CourierFilter::One(_))
    }

    fn has_lists(&self) -> bool {
        self.with_lists && self.filter.courier != CourierFilter::None
    }

    /// The condition of tasks that ended before the day, in no list or in any that has a part of its own.
    fn overdue(&mut self) -> String {
        let day_start = self.values.instant(self.filter.day.after);
        let courier = match self.filter.courier {
            CourierFilter::Any => String::new(),
            CourierFilter::None => " AND courier_id IS NULL".to_owned(),
            CourierFilter::One(_) => format!(" AND {}", self.values.courier(self.filter)),
        };
        let others = if self.with_lists {
            String::new()
        } else {
            let list_day = self.values.list_day(self.filter);
            format!(" AND (courier_id IS NULL OR list_day <> {list_day})")
        };
        format!("before <= {day_start}{courier}{others}")
    }

    /// Adds the tasks in the lists of the day.
    fn add_lists(&mut self) {
        if !self.has_lists() {
            return;
        }
        let (courier, list_day) = (
            self.values.courier(self.filter),
            self.values.list_day(self.filter),
        );
        let states = self.values.states(&self.filter.states);
        let condition = format!("{courier} AND list_day = {list_day} AND {STATE} IN ({states})");
        self.add(&condition, FIRST);
    }

    /// Adds the overdue tasks of a courier.
    fn add_overdue_of_courier(&mut self) {
        let states = self.filter.states.iter().copied();
        let states: Vec<_> = states.filter(|state| !is_finished(*state)).collect();
        if !self.filter.include_overdue || states.is_empty() {
            return;
        }
        let (states, overdue) = (self.values.states(&states), self.overdue());
        let condition = format!(
            "completed_at IS NULL AND cancelled_at IS NULL AND {STATE} IN ({states}) AND {overdue}"
        );
        self.add(&condition, FIRST);
    }

    /// Adds the tasks in a state that are in no list and touch the day, and those that are overdue: of all couriers.
    fn add_state(&mut self, state: StateName) {
        let is_overdue = self.filter.include_overdue && !is_finished(state);
        let mut places = vec!["courier_id IS NULL".to_owned()];
        if self.filter.courier == CourierFilter::Any && self.with_lists {
            // They are in another part; so that the page reads no further because of them.
            let list_day = self.values.list_day(self.filter);
            places.push(format!("list_day = {list_day}"));
        }
        let first = if is_overdue {
            places.push(self.overdue());
            FIRST
        } else {
            self.start_of_day()
        };
        let places = places.join(" OR ");
        let state = self.values.add(state.as_str());
        let day_end = self.values.instant(self.filter.day.before);
        for class in 0..=LONGEST.len() {
            let longest = LONGEST.get(class).map(|longest| {
                let end = self.filter.day.before.as_microsecond();
                let end = self.values.add(end.saturating_add(*longest));
                format!(" AND before < {end}")
            });
            let longest = longest.unwrap_or_default();
            let condition = format!(
                "{STATE} = {state} AND {LENGTH_CLASS} = {class}{longest} AND ({places}) \
                 AND after < {day_end}"
            );
            self.add(&condition, first);
        }
    }

    /// Adds the tasks with open incidents that are neither done nor cancelled.
    fn add_unfinished_incidents(&mut self) {
        let filter = self.filter;
        let states = filter.states.iter().copied();
        let states: Vec<_> = states.filter(|state| !is_finished(*state)).collect();
        let (mut places, mut first) = (Vec::new(), self.start_of_day());
        if self.has_lists() {
            let (courier, list_day) = (self.values.courier(filter), self.values.list_day(filter));
            places.push(format!("{courier} AND list_day = {list_day}"));
            first = FIRST;
        }
        if !self.has_courier() {
            let day_start = self.values.instant(filter.day.after);
            let day_end = self.values.instant(filter.day.before);
            places.push(format!(
                "courier_id IS NULL AND before > {day_start} AND after < {day_end}"
            ));
        }
        if filter.include_overdue {
            places.push(self.overdue());
            first = FIRST;
        }
        if states.is_empty() || places.is_empty() {
            return;
        }
        let (states, places) = (self.values.states(&states), places.join(" OR "));
        let condition = format!(
            "open_incidents IS NOT NULL AND {INCIDENT_DAY} = 'open' AND {STATE} IN ({states}) \
             AND ({places})"
        );
        self.add(&condition, first);
    }

    /// Adds the tasks with open incidents that are done or cancelled.
    fn add_finished_incidents(&mut self) {
        let filter = self.filter;
        let states = filter.states.iter().copied();
        let states: Vec<_> = states.filter(|state| is_finished(*state)).collect();
        if states.is_empty() {
            return;
        }
        if self.has_lists() {
            let (courier, list_day) = (self.values.courier(filter), self.values.list_day(filter));
            let states = self.values.states(&states);
            let condition = format!(
                "open_incidents IS NOT NULL AND {INCIDENT_DAY} = {list_day} AND {courier} \
                 AND {STATE} IN ({states})"
            );
            self.add(&condition, FIRST);
        }
        if !self.has_courier() {
            let (states, day_end) = (
                self.values.states(&states),
                self.values.instant(filter.day.before),
            );
            let condition = format!(
                "open_incidents IS NOT NULL AND {INCIDENT_DAY} = 'none' AND courier_id IS NULL \
                 AND {STATE} IN ({states}) AND after < {day_end}"
            );
            self.add(&condition, self.start_of_day());
        }
    }
}
