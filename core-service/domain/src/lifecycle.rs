//! The life of a delivery: who may change the state of its tasks, when, and which events that causes.
//! Every change of a task's state is decided here.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};

use crate::{
    courier::Place,
    courier_lists::Places,
    delivery::{Booking, Delivery},
    event::EventName,
    id::TimeSlotId,
    named_enum::named_enum,
    task::{Actor, FailureReason, Task, TaskKind, TaskState, TimeWindow},
};

/// How long a courier may reopen a task that it has completed: [`Worker::may_reopen`](crate::worker::Worker::may_reopen)
/// tells which.
const REOPENING: SignedDuration = SignedDuration::from_mins(10);

/// A change of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Start,
    Complete,
    Fail(FailureReason),
    Reopen,
    Reschedule(Reschedule),
}

impl Command {
    /// Whether it says that the task is over, which couriers may report late.
    pub const fn is_end(&self) -> bool {
        matches!(self, Self::Complete | Self::Fail(_))
    }

    /// Of a failure.
    pub const fn reason(&self) -> Option<&FailureReason> {
        match self {
            Self::Fail(reason) => Some(reason),
            _ => None,
        }
    }
}

/// A new window of a task, which is to be done in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reschedule {
    pub window: TimeWindow,
    /// Whether the request gave the window as a time slot.
    pub is_time_slot: bool,
    /// Whether the other task moves by as much and is to be done, unless it is done.
    pub both: bool,
}

/// The places in time slots that a change of a delivery takes and releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BookingChange {
    pub taken: Option<Booking>,
    pub released: Option<Booking>,
}

named_enum! {
    /// The state of a delivery, derived from its tasks.
    pub enum DeliveryState("delivery state", ", ") {
        Created = "created",
        /// The dropoff has a courier.
        Assigned = "assigned",
        Started = "started",
        Picked = "picked",
        InTransit = "in_transit",
        Dropped = "dropped",
        Failed = "failed",
        Completed = "completed",
        Cancelled = "cancelled",
    }
}

/// Why a command changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("is not for this caller")]
    Forbidden,
    /// The state of this task does not permit it.
    #[error("a task is in another state")]
    State(TaskKind),
    /// The delivery is completed, by this task among others.
    #[error("the delivery is completed, which is final")]
    Completed(TaskKind),
    #[error("the personal data of the delivery is erased")]
    Erased,
    #[error("a task of a cancelled delivery is rescheduled together with the other one")]
    NeedsBoth,
    #[error("the pickup would end later than the dropoff")]
    OutOfOrder,
    #[error("the task is not in the list of this courier any more")]
    NotAssigned,
    #[error("a task was moved to another courier's list meanwhile; repeat the request")]
    Moved,
    /// The new window is beyond the range of instants.
    #[error("the window is out of range")]
    OutOfRange,
}

impl Delivery {
    /// The first of the states that holds, from those that end a delivery to its creation.
    pub fn state(&self) -> DeliveryState {
        let [pickup, dropoff] = [&self.pickup.state, &self.dropoff.state];
        let is_failed = |state: &TaskState| matches!(state, TaskState::Failed(_));
        match (pickup, dropoff) {
            (TaskState::Cancelled, TaskState::Cancelled) => DeliveryState::Cancelled,
            (TaskState::Done, TaskState::Done) => DeliveryState::Completed,
            _ if is_failed(pickup) || is_failed(dropoff) => DeliveryState::Failed,
            (_, TaskState::Done) => DeliveryState::Dropped,
            (_, TaskState::Doing) => DeliveryState::InTransit,
            (TaskState::Done, _) => DeliveryState::Picked,
            (TaskState::Doing, _) => DeliveryState::Started,
            _ if self.dropoff.place.is_some() => DeliveryState::Assigned,
            _ => DeliveryState::Created,
        }
    }

    /// Applies a command to a task and returns the resulting events; `None` if the task already is in the
    /// state that the command leads to.
    pub fn apply(
        &mut self,
        kind: TaskKind,
        command: &Command,
        by: Actor,
        now: Timestamp,
    ) -> Result<Option<Vec<EventName>>, Refusal> {
        let (task, other) = match kind {
            TaskKind::Pickup => (&mut self.pickup, &mut self.dropoff),
            TaskKind::Dropoff => (&mut self.dropoff, &mut self.pickup),
        };
        let is_permitted = match command {
            Command::Start | Command::Complete | Command::Fail(_) | Command::Reopen => {
                by != Actor::Shop
            }
            Command::Reschedule(_) => by == Actor::Dispatch,
        };
        if !is_permitted {
            return Err(Refusal::Forbidden);
        }
        if self.is_erased && !command.is_end() {
            return Err(Refusal::Erased);
        }
        let is_open = !task.is_settled();
        let is_pickup = task.is_pickup();
        let (state, events) = match (command, &task.state) {
            (Command::Start | Command::Reopen, TaskState::Doing)
            | (Command::Complete, TaskState::Done)
            | (Command::Fail(_), TaskState::Failed(_)) => return Ok(None),
            (Command::Start, TaskState::Todo) => {
                let event = if is_pickup {
                    EventName::DeliveryStarted
                } else {
                    EventName::DeliveryInTransit
                };
                (TaskState::Doing, vec![event])
            }
            (Command::Complete, _) if is_open => {
                let events = match (is_pickup, other.is_done()) {
                    (true, false) => vec![EventName::DeliveryPicked],
                    (true, true) => vec![EventName::DeliveryPicked, EventName::DeliveryCompleted],
                    (false, false) => vec![EventName::DeliveryDropped],
                    (false, true) => vec![EventName::DeliveryCompleted],
                };
                (TaskState::Done, events)
            }
            (Command::Fail(reason), _) if is_open => {
                let mut reason = reason.clone();
                if self.is_erased {
                    reason.erase();
                }
                (TaskState::Failed(reason), vec![EventName::DeliveryFailed])
            }
            (Command::Reopen, TaskState::Done) if other.is_done() => {
                return Err(Refusal::Completed(kind));
            }
            (Command::Reopen, TaskState::Done) if may_reopen(task, by, now) => {
                (TaskState::Doing, vec![EventName::DeliveryReopened])
            }
            (Command::Reschedule(to), TaskState::Todo) if to.is_reached(task, other) => {
                return Ok(None);
            }
            (Command::Reschedule(to), state) if *state != TaskState::Done => {
                to.apply(task, other, by, now)?;
                (TaskState::Todo, vec![EventName::DeliveryRescheduled])
            }
            _ => return Err(Refusal::State(kind)),
        };
        set_state(task, state, by, now);
        if let Command::Reschedule(to) = command {
            close_incidents(task, now);
            if to.moves(other) {
                close_incidents(other, now);
            }
        }
        Ok(Some(events))
    }

    /// Gives the tasks their new places and returns the resulting events; `None` if no place changes.
    pub fn place(
        &mut self,
        places: &Places,
        now: Timestamp,
    ) -> Result<Option<Vec<EventName>>, Refusal> {
        let (before, had_courier) = (self.clone(), self.dropoff.place.is_some());
        for task in [&mut self.pickup, &mut self.dropoff] {
            let old = task.place;
            let new = places.get(&task.id).copied().unwrap_or(old);
            let courier = |place: Option<Place>| Some(place?.list.courier_id);
            if self.is_erased && courier(new).is_some_and(|new| courier(old) != Some(new)) {
                return Err(Refusal::Erased);
            }
            task.place = new;
            if old.map(|place| place.list) != new.map(|place| place.list) {
                task.updated_at = now;
            }
        }
        let is_assigned = !had_courier && self.dropoff.place.is_some();
        let events = is_assigned.then_some(EventName::DeliveryAssigned);
        Ok((*self != before).then(|| events.into_iter().collect()))
    }

    /// Adapts the booking to the change that made this delivery of an earlier one. A dropoff that moves within
    /// its booked window keeps it, unless it requests a slot of the store; one that moves elsewhere books the slot that
    /// `find_slot` finds for its window. A cancelled delivery has no place, and takes one again when it is rescheduled.
    pub fn rebook(
        &mut self,
        before: &Self,
        is_requested: bool,
        find_slot: impl FnOnce(TimeWindow) -> Option<TimeSlotId>,
    ) -> BookingChange {
        let is_cancelled = |delivery: &Self| delivery.state() == DeliveryState::Cancelled;
        let times = |delivery: &Self| (delivery.dropoff.window, delivery.dropoff.has_time_slot);
        if !is_cancelled(self) && (is_cancelled(before) || times(self) != times(before)) {
            let window = self.dropoff.window;
            let earlier = self
                .booking
                .filter(|booking| !is_requested && booking.window.contains(window));
            self.booking = earlier.or_else(|| {
                let time_slot_id = find_slot(window)?;
                Some(Booking {
                    time_slot_id,
                    window,
                })
            });
        }
        let place = |delivery: &Self| delivery.booking.filter(|_| !is_cancelled(delivery));
        let (released, taken) = (place(before), place(self));
        if released == taken {
            return BookingChange::default();
        }
        BookingChange { taken, released }
    }

    /// Cancels the delivery with both tasks and returns the resulting events: `None` if it was already
    /// cancelled. A shop can cancel while both tasks are to be done, dispatch while neither is done.
    pub fn cancel(&mut self, by: Actor, now: Timestamp) -> Result<Option<Vec<EventName>>, Refusal> {
        if by == Actor::Courier {
            return Err(Refusal::Forbidden);
        }
        if self.state() == DeliveryState::Cancelled {
            return Ok(None);
        }
        let tasks = [&mut self.pickup, &mut self.dropoff];
        let is_in_the_way = |task: &&mut Task| match by {
            Actor::Dispatch => task.is_done(),
            _ => task.state != TaskState::Todo,
        };
        if let Some(task) = tasks.iter().find(|task| is_in_the_way(task)) {
            return Err(Refusal::State(task.kind));
        }
        for task in tasks {
            set_state(task, TaskState::Cancelled, by, now);
        }
        Ok(Some(vec![EventName::DeliveryCancelled]))
    }
}

fn may_reopen(task: &Task, by: Actor, now: Timestamp) -> bool {
    let is_by_courier = task.state_set_by == Actor::Courier;
    by == Actor::Dispatch || is_by_courier && now.duration_since(task.state_since) <= REOPENING
}

impl Reschedule {
    /// Whether a task that is to be done, and the other one, need no change.
    fn is_reached(self, task: &Task, other: &Task) -> bool {
        let is_other_reached = matches!(other.state, TaskState::Todo | TaskState::Done);
        let has_incidents =
            task.open_incidents > 0 || self.moves(other) && other.open_incidents > 0;
        !has_incidents
            && self.window == task.window
            && (task.has_time_slot || !self.is_time_slot)
            && (is_other_reached || !self.both)
    }

    fn moves(self, other: &Task) -> bool {
        self.both && !other.is_done()
    }

    /// Moves a task, and with `both` the other one by as much as the end of this one moves.
    fn apply(
        self,
        task: &mut Task,
        other: &mut Task,
        by: Actor,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        if other.state == TaskState::Cancelled && !self.both {
            return Err(Refusal::NeedsBoth);
        }
        let moves_other = self.moves(other);
        let mut window_of_other = other.window;
        if moves_other {
            let shift = self.window.before.duration_since(task.window.before);
            let shifted = |instant: Timestamp| {
                let shifted = instant.checked_add(shift);
                shifted.map_err(|_| Refusal::OutOfRange)
            };
            window_of_other = TimeWindow {
                after: shifted(other.window.after)?,
                before: shifted(other.window.before)?,
            };
        }
        let (pickup, dropoff) = match task.kind {
            TaskKind::Pickup => (self.window, window_of_other),
            TaskKind::Dropoff => (window_of_other, self.window),
        };
        // The end of a window does not matter once the task is done.
        if pickup.before > dropoff.before && !other.is_done() {
            return Err(Refusal::OutOfOrder);
        }
        task.has_time_slot = self.is_time_slot || task.has_time_slot && task.window == self.window;
        task.window = self.window;
        task.place = None;
        if other.window != window_of_other {
            other.window = window_of_other;
            other.has_time_slot = false;
            other.updated_at = now;
        }
        if moves_other {
            other.place = None;
        }
        if moves_other && other.state != TaskState::Todo {
            set_state(other, TaskState::Todo, by, now);
        }
        Ok(())
    }
}

/// A change of its own, right after that of the window: each has an instant in the history.
fn close_incidents(task: &mut Task, now: Timestamp) {
    if task.open_incidents > 0 {
        task.open_incidents = 0;
        let next = now.saturating_add(SignedDuration::from_micros(1));
        task.updated_at = next.unwrap_or(now);
    }
}

fn set_state(task: &mut Task, state: TaskState, by: Actor, now: Timestamp) {
    task.state = state;
    task.state_since = now;
    task.state_set_by = by;
    task.updated_at = now;
}
