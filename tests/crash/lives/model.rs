//! The life of a delivery as the specification has it, in its own words and without the product's code: what a change
//! in the histories of its tasks does, and which events it causes.

use std::collections::BTreeSet;

use proto::{TaskEvent, task::State, task_event::Actor};

use super::journal::{Command, Kind, List, Order, Window, micros};

/// How long a courier may reopen a task in its list that it has done itself.
const REOPENING: i64 = 600_000_000;

#[derive(Clone, Debug)]
pub(super) struct TaskLife {
    pub(super) state: State,
    pub(super) since: i64,
    pub(super) by: Actor,
    /// The courier who has set the state, or for whom dispatch has.
    courier: String,
    pub(super) reason: String,
    pub(super) list: Option<List>,
    /// The couriers who may report its end, as they had it within the last 24 hours.
    had_by: BTreeSet<String>,
    pub(super) window: Window,
    /// The descriptions of its incidents.
    pub(super) open: Vec<String>,
    pub(super) closed: Vec<String>,
    due: Option<Due>,
}

/// What the next change must be, as it belongs to the one before.
#[derive(Clone, Debug, PartialEq)]
enum Due {
    /// It was rescheduled.
    ClosedIncidents,
    /// A late report or a conflict, of this state.
    Incident(&'static str),
}

#[derive(Clone, Debug)]
pub(super) struct Life {
    /// Pickup first.
    pub(super) tasks: [TaskLife; 2],
    /// The day whose lists couriers work on.
    today: String,
}

/// The rows that one change has added to the histories of the two tasks.
pub(super) type Rows<'a> = [Option<&'a TaskEvent>; 2];

impl TaskLife {
    pub(super) fn is_open(&self) -> bool {
        [State::Todo, State::Doing].contains(&self.state)
    }

    pub(super) fn courier(&self) -> &str {
        self.list.as_ref().map_or("", |list| &list.courier)
    }

    pub(super) fn is_had_by(&self, courier: &str) -> bool {
        self.had_by.contains(courier)
    }

    fn set(&mut self, state: State, at: i64, row: &TaskEvent) {
        self.state = state;
        self.since = at;
        self.by = row.actor();
        self.courier.clone_from(&row.courier);
        self.reason.clone_from(&row.failure_reason);
    }

    fn may_reopen(&self, other: &Self, by: Actor, courier: &str) -> bool {
        let is_its_own = self.by == Actor::Courier && self.courier == courier;
        let is_permitted = by == Actor::Dispatch || is_its_own;
        self.state == State::Done && other.state != State::Done && is_permitted
    }
}

impl Life {
    pub(super) fn new(order: &Order, today: &str) -> Self {
        let tasks = order.windows.map(|window| TaskLife {
            state: State::Todo,
            since: order.created,
            by: Actor::Shop,
            courier: String::new(),
            reason: String::new(),
            list: None,
            had_by: BTreeSet::new(),
            window,
            open: Vec::new(),
            closed: Vec::new(),
            due: None,
        });
        let today = today.to_owned();
        Self { tasks, today }
    }

    /// Applies a change and returns the events that it causes; `None` if it is not permitted.
    pub(super) fn apply(&mut self, at: i64, rows: &Rows) -> Option<Vec<&'static str>> {
        let found: Vec<_> = (0..2)
            .filter_map(|index| Some((index, rows[index]?)))
            .collect();
        if self.is_due() {
            return self.finish(rows).then(Vec::new);
        }
        let are = |names: &[&str]| found.iter().all(|(_, row)| names.contains(&&*row.event));
        let is_dispatch = found.iter().all(|(_, row)| row.actor() == Actor::Dispatch);
        if are(&["task:cancelled"]) {
            let is_permitted = |by| found.len() == 2 && !self.refuses_cancelling(by);
            if !found.iter().all(|(_, row)| is_permitted(row.actor())) || self.is_cancelled() {
                return None;
            }
            for (index, row) in found {
                self.tasks[index].set(State::Cancelled, at, row);
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
            self.step(at, *index, row)
        }
    }

    /// Whether a change is not complete.
    pub(super) fn is_due(&self) -> bool {
        self.tasks.iter().any(|task| task.due.is_some())
    }

    /// Completes the change before, if that is what the rows do.
    fn finish(&mut self, rows: &Rows) -> bool {
        std::iter::zip(&mut self.tasks, rows).all(|(task, row)| match (task.due.take(), row) {
            (None, None) => true,
            (Some(Due::ClosedIncidents), Some(row)) => {
                task.closed.append(&mut task.open);
                row.event == "task:incident-closed" && row.notes.is_empty()
            }
            (Some(Due::Incident(state)), Some(row)) => {
                task.open.push(row.notes.clone());
                row.event == "task:incident-reported"
                    && row.actor() == Actor::Courier
                    && row.notes.starts_with(state)
            }
            _ => false,
        })
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.tasks.iter().all(|task| task.state == State::Cancelled)
    }

    fn refuses_cancelling(&self, by: Actor) -> bool {
        self.tasks.iter().any(|task| match by {
            Actor::Shop => task.state != State::Todo,
            Actor::Dispatch => task.state == State::Done,
            _ => true,
        })
    }

    /// Whether the task is in a list that the courier works on.
    pub(super) fn is_own(&self, index: usize, courier: &str) -> bool {
        let list = self.tasks[index].list.as_ref();
        list.is_some_and(|list| list.courier == courier && list.day == self.today)
    }

    /// Whether the pickup would end later than the dropoff, unless the end of one does not matter any more, or a task of a
    /// cancelled delivery is rescheduled alone.
    pub(super) fn refuses_window(&self, index: usize, window: Window, both: bool) -> bool {
        let other = &self.tasks[1 - index];
        let mut ends = [other.window[1]; 2];
        if both && other.state != State::Done {
            ends[1 - index] += window[1] - self.tasks[index].window[1];
        }
        ends[index] = window[1];
        let is_late = ends[0] > ends[1];
        is_late && other.state != State::Done || !both && other.state == State::Cancelled
    }

    fn reschedule(&mut self, at: i64, found: &[(usize, &TaskEvent)]) -> Option<Vec<&'static str>> {
        let both = found.len() == 2;
        let mut shifts = Vec::new();
        for (index, row) in found {
            let task = &self.tasks[*index];
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
            let task = &mut self.tasks[*index];
            task.set(State::Todo, at, row);
            task.list = None;
            task.window = [micros(row.after), micros(row.before)];
            task.due = (!task.open.is_empty()).then_some(Due::ClosedIncidents);
        }
        (shifts.len() == 1).then(|| vec!["delivery.rescheduled"])
    }

    fn assign(&mut self, found: &[(usize, &TaskEvent)]) -> Option<Vec<&'static str>> {
        let had_courier = self.tasks[1].list.is_some();
        for (index, row) in found {
            let (courier, day) = (row.courier.clone(), row.list_day.clone());
            let list = (row.event == "task:assigned").then_some(List { courier, day });
            let task = &mut self.tasks[*index];
            if !task.is_open() || task.list == list {
                return None;
            }
            let own = list.as_ref().filter(|list| list.day == self.today);
            task.had_by.extend(own.map(|list| list.courier.clone()));
            task.list = list;
        }
        let is_assigned = !had_courier && self.tasks[1].list.is_some();
        let events = is_assigned.then_some("delivery.assigned");
        Some(events.into_iter().collect())
    }

    /// A change of one task by dispatch, also for the courier in whose list it is, or by a courier: who has it in its
    /// list, or for its end had it.
    fn step(&mut self, at: i64, index: usize, row: &TaskEvent) -> Option<Vec<&'static str>> {
        let (by, courier, is_pickup) = (row.actor(), &*row.courier, index == 0);
        let is_own = self.is_own(index, courier);
        let other = self.tasks[1 - index].clone();
        let task = &mut self.tasks[index];
        let is_late = by == Actor::Courier && !is_own;
        let is_for_it = match by {
            Actor::Dispatch => courier.is_empty() || courier == task.courier(),
            Actor::Courier => is_own || task.is_had_by(courier),
            _ => false,
        };
        if !is_for_it {
            return None;
        }
        let (state, events) = match &*row.event {
            "task:started" if task.state == State::Todo && !is_late => {
                let events = ["delivery.started", "delivery.in_transit"];
                (State::Doing, vec![events[index]])
            }
            "task:done" if task.is_open() => {
                let events = match (is_pickup, other.state == State::Done) {
                    (true, false) => vec!["delivery.picked"],
                    (true, true) => vec!["delivery.picked", "delivery.completed"],
                    (false, false) => vec!["delivery.dropped"],
                    (false, true) => vec!["delivery.completed"],
                };
                task.due = is_late.then_some(Due::Incident("DONE"));
                (State::Done, events)
            }
            "task:failed" if task.is_open() => {
                task.due = is_late.then_some(Due::Incident("FAILED"));
                (State::Failed, vec!["delivery.failed"])
            }
            "task:reopened" if !is_late && task.may_reopen(&other, by, &row.courier) => {
                let is_in_time = by == Actor::Dispatch || at - task.since <= REOPENING;
                (State::Doing, is_in_time.then(|| vec!["delivery.reopened"])?)
            }
            "task:conflict" if by == Actor::Courier => {
                let (reported, word) = if row.failure_reason.is_empty() {
                    (State::Done, "DONE")
                } else {
                    (State::Failed, "FAILED")
                };
                let is_repetition = task.state == reported && (is_own || task.courier == courier);
                task.due = Some(Due::Incident(word));
                return (!task.is_open() && !is_repetition).then(Vec::new);
            }
            _ => return None,
        };
        task.set(state, at, row);
        Some(events)
    }

    /// Whether a task already is as a command asks for. That a courier reports late what another has reported is none.
    pub(super) fn has_reached(&self, command: &Command, index: usize) -> bool {
        let task = &self.tasks[index];
        let is_for_it = command.by == Actor::Dispatch
            || self.is_own(index, &command.courier)
            || task.courier == command.courier;
        match &command.kind {
            Kind::Start | Kind::Reopen => task.state == State::Doing,
            Kind::Complete => task.state == State::Done && is_for_it,
            Kind::Fail => task.state == State::Failed && is_for_it,
            Kind::Reschedule { window, .. } => task.state == State::Todo && task.window == *window,
            Kind::Cancel(_) => self.is_cancelled(),
            Kind::Assign { .. } | Kind::Set { .. } => !task.is_open(),
        }
    }

    /// Whether the state of the delivery does not permit a command.
    pub(super) fn refuses(&self, command: &Command, index: usize) -> bool {
        let (task, other) = (&self.tasks[index], &self.tasks[1 - index]);
        let refuses = match &command.kind {
            Kind::Start | Kind::Complete | Kind::Fail => !task.is_open(),
            Kind::Reopen => !task.may_reopen(other, command.by, &command.courier),
            Kind::Reschedule { .. } => task.state == State::Done,
            Kind::Cancel(_) => self.refuses_cancelling(command.by),
            Kind::Assign { .. } | Kind::Set { .. } => false,
        };
        refuses && !self.has_reached(command, index)
    }
}
