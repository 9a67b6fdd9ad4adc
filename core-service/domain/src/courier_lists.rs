//! Changes of couriers' lists: which tasks a courier has on a day, in which order. A task is in one list at most.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{civil::Date, tz::TimeZone};
use sha2::{Digest, Sha256};

use crate::{
    courier::{ListKey, Place},
    id::{CourierId, TaskId},
    task::Task,
};

/// The places that a change gives to tasks: none to one that becomes unassigned.
pub type Places = BTreeMap<TaskId, Option<Place>>;

/// The lists that a change may touch, which are locked, with their tasks and those that the change names.
pub struct Lists {
    locked: BTreeSet<ListKey>,
    tasks: BTreeMap<TaskId, Task>,
    orders: BTreeMap<ListKey, Vec<TaskId>>,
}

/// A list as it shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedList {
    pub key: ListKey,
    /// Of the list as the caller knows it.
    pub etag: String,
    pub tasks: Vec<TaskId>,
}

/// Where tasks shall go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// None if they become unassigned.
    pub courier_id: Option<CourierId>,
    /// None for the first day of each task's window that is not past.
    pub day: Option<Date>,
    /// Before which of the list's tasks as they are, counted from 0; none for its end.
    pub position: Option<usize>,
    /// Whether the other task of a delivery stays where it is.
    pub is_single: bool,
}

impl Target {
    /// The list into which a task goes, if any.
    pub fn list_of(&self, task: &Task, today: Date, zone: &TimeZone) -> Option<ListKey> {
        let first_day = || task.window.after.to_zoned(zone.clone()).date().max(today);
        Some(ListKey {
            courier_id: self.courier_id?,
            day: self.day.unwrap_or_else(first_day),
        })
    }
}

/// A task to move, and the courier that it is expected to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub task: TaskId,
    pub expected: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    Anything,
    Courier(Option<CourierId>),
}

/// Identifies the members of a list and their order.
pub fn etag(order: &[TaskId]) -> String {
    let mut hash = Sha256::new();
    for id in order {
        hash.update(id.0.as_bytes());
    }
    let hash = hash.finalize();
    let bytes = hash.first_chunk().copied().unwrap_or_default();
    format!("{:016x}", u64::from_be_bytes(bytes))
}

/// The lists of tasks, each in its order.
pub fn orders<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> BTreeMap<ListKey, Vec<TaskId>> {
    let placed = tasks
        .into_iter()
        .filter_map(|task| Some((task.place?, task.id)));
    let sorted: BTreeSet<_> = placed
        .map(|(place, id)| (place.list, place.position, id))
        .collect();
    let mut orders = BTreeMap::<_, Vec<_>>::new();
    for (list, _, id) in sorted {
        orders.entry(list).or_default().push(id);
    }
    orders
}

impl Lists {
    /// Of all tasks of the locked lists, and others that a change names.
    pub fn new(
        locked: impl IntoIterator<Item = ListKey>,
        tasks: impl IntoIterator<Item = Task>,
    ) -> Self {
        let tasks: BTreeMap<_, _> = tasks.into_iter().map(|task| (task.id, task)).collect();
        let locked: BTreeSet<_> = locked.into_iter().collect();
        let mut orders = orders(tasks.values());
        orders.retain(|list, _| locked.contains(list));
        Self {
            locked,
            tasks,
            orders,
        }
    }

    fn order(&self, list: ListKey) -> &[TaskId] {
        self.orders.get(&list).map_or(&[], Vec::as_slice)
    }

    fn list_of(&self, task: TaskId) -> Option<ListKey> {
        Some(self.tasks.get(&task)?.place?.list)
    }

    fn is_settled(&self, task: TaskId) -> bool {
        self.tasks.get(&task).is_some_and(Task::is_settled)
    }

    /// Replaces lists, unless they are as requested: a task that is left out becomes unassigned. Settled tasks keep their
    /// places, whatever is requested.
    /// Fails with the lists that are not as the caller knows them, or that have a task which the request puts elsewhere.
    pub fn replace(&self, requested: &[RequestedList]) -> Result<Places, BTreeSet<ListKey>> {
        let is_reached = |list: &RequestedList| list.tasks == self.order(list.key);
        if requested.iter().all(is_reached) {
            return Ok(Places::new());
        }
        let named: BTreeSet<_> = requested.iter().map(|list| list.key).collect();
        let is_stale = |list: &&RequestedList| list.etag != etag(self.order(list.key));
        let stale = requested.iter().filter(is_stale).map(|list| list.key);
        let of_tasks = requested
            .iter()
            .flat_map(|list| &list.tasks)
            .filter_map(|task| self.list_of(*task));
        let elsewhere = of_tasks.filter(|list| !named.contains(list));
        let changed: BTreeSet<_> = stale.chain(elsewhere).collect();
        if !changed.is_empty() {
            return Err(changed);
        }
        let orders = requested.iter().map(|list| {
            let open = list.tasks.iter().copied();
            let mut order: Vec<_> = open.filter(|task| !self.is_settled(*task)).collect();
            for (position, task) in self.order(list.key).iter().enumerate() {
                if self.is_settled(*task) {
                    order.insert(position.min(order.len()), *task);
                }
            }
            (list.key, order)
        });
        Ok(self.places(orders.collect()))
    }

    /// Moves tasks into lists, and with each the other task of its delivery, unless that is settled. Returns those
    /// that are left where they are: settled ones, and deliveries of which a task has another courier than expected.
    pub fn assign(
        &self,
        moves: &[Move],
        target: &Target,
        list_of: impl Fn(&Task) -> Option<ListKey>,
    ) -> (Places, Vec<TaskId>) {
        let named: BTreeMap<_, _> = moves.iter().map(|of| (of.task, of.expected)).collect();
        let (mut left, mut leaving) = (Vec::new(), BTreeSet::new());
        let mut blocks = BTreeMap::<_, Vec<_>>::new();
        for Move { task, expected } in moves.iter().copied() {
            let tasks = self.moved_together(task, target.is_single);
            let may_move = |task: &&Task| {
                let expected = named.get(&task.id).copied().unwrap_or(expected);
                let list = task.place.map(|place| place.list);
                let courier = list.map(|list| list.courier_id);
                let mut lists = [list, list_of(task)].into_iter().flatten();
                [Expected::Anything, Expected::Courier(courier)].contains(&expected)
                    && lists.all(|list| self.locked.contains(&list))
            };
            if self.is_settled(task) || !tasks.iter().all(may_move) {
                left.push(task);
                continue;
            }
            for task in tasks {
                if leaving.insert(task.id) {
                    blocks.entry(list_of(task)).or_default().push(task.id);
                }
            }
        }

        let mut orders = self.orders.clone();
        for order in orders.values_mut() {
            order.retain(|task| !leaving.contains(task));
        }
        for (list, block) in blocks {
            let Some(list) = list else { continue };
            let following = target
                .position
                .and_then(|position| self.order(list).get(position..));
            let mut following = following.unwrap_or_default().iter();
            let anchor = following.find(|task| !leaving.contains(task));
            let order = orders.entry(list).or_default();
            let index = order.iter().position(|task| Some(task) == anchor);
            let index = index.unwrap_or(order.len());
            order.splice(index..index, block);
        }
        (self.places(orders), left)
    }

    /// All locked lists as they are with new places.
    pub fn orders_with(&self, places: &Places) -> BTreeMap<ListKey, Vec<TaskId>> {
        let tasks = self.tasks.values().cloned().map(|mut task| {
            task.place = places.get(&task.id).copied().unwrap_or(task.place);
            task
        });
        orders(&tasks.collect::<Vec<_>>())
    }

    /// The couriers who get tasks that they do not have.
    pub fn receivers(&self, places: &Places) -> BTreeSet<CourierId> {
        let courier = |place: Option<Place>| Some(place?.list.courier_id);
        let changes = places.iter().map(|(id, place)| {
            let before = self.tasks.get(id).and_then(|task| courier(task.place));
            courier(*place).filter(|new| before != Some(*new))
        });
        changes.flatten().collect()
    }

    /// A task and the other one of its delivery, the pickup first.
    fn moved_together(&self, named: TaskId, is_single: bool) -> Vec<&Task> {
        let Some(task) = self.tasks.get(&named) else {
            return Vec::new();
        };
        let is_moved = |other: &&Task| {
            other.id == named
                || !is_single && other.delivery_id == task.delivery_id && !other.is_settled()
        };
        let mut tasks: Vec<_> = self.tasks.values().filter(is_moved).collect();
        tasks.sort_by_key(|task| !task.is_pickup());
        tasks
    }

    /// What changes with these orders of all lists that are named.
    fn places(&self, orders: BTreeMap<ListKey, Vec<TaskId>>) -> Places {
        let named: BTreeSet<_> = orders.keys().copied().collect();
        let left_out = self
            .tasks
            .values()
            .filter(|task| task.place.is_some_and(|place| named.contains(&place.list)));
        let mut places: Places = left_out.map(|task| (task.id, None)).collect();
        for (list, order) in orders {
            for (position, id) in (0..).zip(order) {
                places.insert(id, Some(Place { list, position }));
            }
        }
        places.retain(|id, place| self.tasks.get(id).is_some_and(|task| task.place != *place));
        places
    }
}
