//! The life of a delivery as the tables of states, commands and events have it: what a change in the histories of
//! its tasks does, and which events it causes.

use std::collections::BTreeMap;

use proto::{TaskEvent, task::State, task_event::Actor};

use super::journal::{Kind, List, Order, Window, micros};

/// How long a courier may reopen a task.
const REOPENING: i64 = 600_000_000;

#[derive(Clone, Debug)]
pub(super) struct TaskLife {
    pub(super) state: State,
    pub(super) since: i64,
    pub(super) by: Actor,
    /// The client that set the state.
    client: String,
    pub(super) reason: String,
    pub(super) list: Option<List>,
    pub(super) window: Window,
    /// With what was done, if they are closed; by their descriptions.
    pub(super) incidents: BTreeMap<String, Option<String>>,
    /// Whether the next change closes its incidents, as the task was rescheduled.
    is_closing: bool,
}

/// Pickup first.
#[derive(Clone, Debug)]
pub(super) struct Life(pub(super) [TaskLife; 2]);

/// The rows that one change has added to the histories of the two tasks.
pub(super) type Rows<'a> = [Option<&'a TaskEvent>; 2];

/// What the rows of histories do not have.
#[derive(Default)]
pub(super) struct Facts {
    /// The couriers of clients.
    pub(super) couriers: BTreeMap<String, String>,
    /// The descriptions of the incidents that commands close, by their notes.
    pub(super) closed: BTreeMap<String, String>,
}

impl TaskLife {
    pub(super) fn is_open(&self) -> bool {
        [State::Todo, State::Doing].contains(&self.state)
    }

    pub(super) fn has_incidents(&self) -> bool {
        self.incidents.values().any(Option::is_none)
    }

    pub(super) fn courier(&self) -> Option<&String> {
        Some(&self.list.as_ref()?.courier)
    }

    fn set(&mut self, state: State, at: i64, row: &TaskEvent) {
        self.state = state;
        self.since = at;
        self.by = row.actor();
        self.client.clone_from(&row.api_client);
        self.reason.clone_from(&row.failure_reason);
    }

    fn may_reopen(&self, other: &Self, by: Actor, client: &str, at: i64) -> bool {
        let is_its_own = self.by == Actor::Courier && self.client == client;
        self.state == State::Done
            && other.state != State::Done
            && (by == Actor::Dispatch || is_its_own && at - self.since <= REOPENING)
    }
}

impl Life {
    pub(super) fn new(order: &Order) -> Self {
        Self(order.windows.map(|window| TaskLife {
            state: State::Todo,
            since: order.created,
            by: Actor::Shop,
            client: String::new(),
            reason: String::new(),
            list: None,
            window,
            incidents: BTreeMap::new(),
            is_closing: false,
        }))
    }

    /// Applies a change and returns the events that it causes; `None` if it is not permitted.
    pub(super) fn apply(
        &mut self,
        at: i64,
        rows: &Rows,
        facts: &Facts,
    ) -> Option<Vec<&'static str>> {
        let found: Vec<_> = (0..2)
            .filter_map(|index| Some((index, rows[index]?)))
            .collect();
        let are = |names: &[&str]| found.iter().all(|(_, row)| names.contains(&&*row.event));
        let closing = self.0.each_ref().map(|task| task.is_closing);
        if closing.contains(&true) {
            let has_notes = found.iter().any(|(_, row)| !row.notes.is_empty());
            let is_it = are(&["task:incident-closed"]) && !has_notes;
            for (index, _) in &found {
                self.0[*index].is_closing = false;
                for closed in self.0[*index].incidents.values_mut() {
                    closed.get_or_insert_with(|| "rescheduled".to_owned());
                }
            }
            return (is_it && rows.map(|row| row.is_some()) == closing).then(Vec::new);
        }
        let is_dispatch = found.iter().all(|(_, row)| row.actor() == Actor::Dispatch);
        if are(&["task:cancelled"]) {
            let is_permitted = |by| found.len() == 2 && !self.refuses_cancelling(by);
            if !found.iter().all(|(_, row)| is_permitted(row.actor())) || self.is_cancelled() {
                return None;
            }
            for (index, row) in found {
                self.0[index].set(State::Cancelled, at, row);
            }
            Some(vec!["delivery.cancelled"])
        } else if is_dispatch && are(&["task:rescheduled"]) {
            self.reschedule(at, &found)
        } else if is_dispatch && are(&["task:assigned", "task:unassigned"]) {
            self.assign(&found)
        } else {
            let [(index, row)] = found.as_slice() else {
                return None;
            };
            self.step(at, *index, row, facts)
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.iter().all(|task| task.state == State::Cancelled)
    }

    fn refuses_cancelling(&self, by: Actor) -> bool {
        self.0.iter().any(|task| match by {
            Actor::Shop => task.state != State::Todo,
            Actor::Dispatch => task.state == State::Done,
            _ => true,
        })
    }

    /// Whether the pickup would end later than the dropoff, unless the end of one does not matter any more, or a task of a
    /// cancelled delivery is rescheduled alone.
    pub(super) fn refuses_window(&self, index: usize, window: Window, both: bool) -> bool {
        let other = &self.0[1 - index];
        let mut ends = [other.window[1]; 2];
        if both && other.state != State::Done {
            ends[1 - index] += window[1] - self.0[index].window[1];
        }
        ends[index] = window[1];
        let is_late = ends[0] > ends[1];
        is_late && other.state != State::Done || !both && other.state == State::Cancelled
    }

    fn reschedule(&mut self, at: i64, found: &[(usize, &TaskEvent)]) -> Option<Vec<&'static str>> {
        let both = found.len() == 2;
        let mut shifts = Vec::new();
        for (index, row) in found {
            let task = &self.0[*index];
            let window = [micros(row.after), micros(row.before)];
            let previous = [micros(row.previous_after), micros(row.previous_before)];
            let is_permitted = task.state != State::Done && previous == task.window;
            if !is_permitted || self.refuses_window(*index, window, both) {
                return None;
            }
            shifts.push(window[1] - previous[1]);
        }
        shifts.dedup();
        for (index, row) in found {
            let task = &mut self.0[*index];
            task.set(State::Todo, at, row);
            task.list = None;
            task.window = [micros(row.after), micros(row.before)];
            task.is_closing = task.has_incidents();
        }
        (shifts.len() == 1).then(|| vec!["delivery.rescheduled"])
    }

    fn assign(&mut self, found: &[(usize, &TaskEvent)]) -> Option<Vec<&'static str>> {
        let had_courier = self.0[1].list.is_some();
        for (index, row) in found {
            let (courier, day) = (row.courier.clone(), row.list_day.clone());
            let list = (row.event == "task:assigned").then_some(List { courier, day });
            let task = &mut self.0[*index];
            if !task.is_open() || task.list == list {
                return None;
            }
            task.list = list;
        }
        let is_assigned = !had_courier && self.0[1].list.is_some();
        Some(
            is_assigned
                .then_some("delivery.assigned")
                .into_iter()
                .collect(),
        )
    }

    /// A change of one task by dispatch, or by the courier in whose list it is.
    fn step(
        &mut self,
        at: i64,
        index: usize,
        row: &TaskEvent,
        facts: &Facts,
    ) -> Option<Vec<&'static str>> {
        let (by, other, is_pickup) = (row.actor(), self.0[1 - index].clone(), index == 0);
        let task = &mut self.0[index];
        let courier = facts.couriers.get(&row.api_client);
        let is_its_courier = by == Actor::Courier && courier.is_some() && courier == task.courier();
        if by != Actor::Dispatch && !is_its_courier {
            return None;
        }
        let (state, events) = match &*row.event {
            "task:started" if task.state == State::Todo && is_pickup => {
                (State::Doing, vec!["delivery.started"])
            }
            "task:started" if task.state == State::Todo => {
                (State::Doing, vec!["delivery.in_transit"])
            }
            "task:done" if task.is_open() => {
                let events = match (is_pickup, other.state == State::Done) {
                    (true, false) => vec!["delivery.picked"],
                    (true, true) => vec!["delivery.picked", "delivery.completed"],
                    (false, false) => vec!["delivery.dropped"],
                    (false, true) => vec!["delivery.completed"],
                };
                (State::Done, events)
            }
            "task:failed" if task.is_open() => (State::Failed, vec!["delivery.failed"]),
            "task:reopened" if task.may_reopen(&other, by, &row.api_client, at) => {
                (State::Doing, vec!["delivery.reopened"])
            }
            "task:incident-reported" => {
                let is_new = task.incidents.insert(row.notes.clone(), None).is_none();
                return is_new.then(Vec::new);
            }
            "task:incident-closed" if by == Actor::Dispatch => {
                let incident = task.incidents.get_mut(facts.closed.get(&row.notes)?)?;
                return incident.replace(row.notes.clone()).is_none().then(Vec::new);
            }
            _ => return None,
        };
        task.set(state, at, row);
        Some(events)
    }

    /// Whether a task already is as a command asks for.
    pub(super) fn has_reached(&self, kind: &Kind, index: usize) -> bool {
        let task = &self.0[index];
        match kind {
            Kind::Start | Kind::Reopen => task.state == State::Doing,
            Kind::Complete => task.state == State::Done,
            Kind::Fail => task.state == State::Failed,
            Kind::Reschedule { window, .. } => task.state == State::Todo && task.window == *window,
            Kind::Cancel(_) => self.is_cancelled(),
            Kind::Report | Kind::Close(_) | Kind::Assign { .. } | Kind::Set { .. } => false,
        }
    }

    /// Whether the state of the delivery does not permit a command.
    pub(super) fn refuses(&self, kind: &Kind, index: usize, by: Actor, client: &str) -> bool {
        let task = &self.0[index];
        let other = &self.0[1 - index];
        match kind {
            Kind::Start => !task.is_open(),
            Kind::Complete => !task.is_open() && task.state != State::Done,
            Kind::Fail => !task.is_open() && task.state != State::Failed,
            Kind::Reopen => {
                let may_reopen = task.may_reopen(other, by, client, task.since);
                task.state != State::Doing && !may_reopen
            }
            Kind::Reschedule { .. } => task.state == State::Done,
            Kind::Cancel(_) => !self.is_cancelled() && self.refuses_cancelling(by),
            Kind::Report | Kind::Close(_) | Kind::Assign { .. } | Kind::Set { .. } => false,
        }
    }
}
