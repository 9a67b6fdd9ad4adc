//! The history of a task: its transitions, each with who reported it and when it occurred.

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use crate::{
    courier::ListKey,
    delivery::Delivery,
    device_clock::{DeviceTimes, Occurrence},
    id::{ApiClientId, CourierId, TaskId},
    named_enum::named_enum,
    task::{Actor, FailureReason, Task, TaskState, TimeWindow},
};

/// What comes with a command, besides what it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    pub by: Actor,
    pub api_client_id: ApiClientId,
    /// Whose report it is: the courier, also if dispatch reports on its behalf.
    pub courier_id: Option<CourierId>,
    pub times: DeviceTimes,
    pub remarks: Remarks,
}

/// What a courier or dispatch writes about a task that ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    pub notes: Option<String>,
    /// Who handed the parcel over, or took it.
    pub contact_name: Option<String>,
}

/// One transition of a task. It is stored with the change, and never changes but for erasing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEvent {
    pub task_id: TaskId,
    pub by: Actor,
    /// None once it is erased.
    pub api_client_id: Option<ApiClientId>,
    /// The courier who reported it, or for whom; none once it is erased.
    pub courier_id: Option<CourierId>,
    /// When its report arrived; later than the delivery's changes before.
    pub created_at: Timestamp,
    pub occurrence: Occurrence,
    pub transition: Transition,
}

/// What a task went through, with what is known of it. Its creation is read from the task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transition {
    /// The list, unless it is erased.
    Assigned(Option<ListKey>),
    Unassigned,
    Started,
    Done(Remarks),
    Failed {
        reason: FailureReason,
        notes: Option<String>,
    },
    Cancelled,
    Rescheduled {
        from: TimeWindow,
        to: TimeWindow,
    },
    Reopened,
    IncidentReported {
        reason: Option<FailureReason>,
        /// Its description.
        notes: Option<String>,
    },
    IncidentClosed {
        /// What was done.
        notes: Option<String>,
    },
    /// Its comments, telephone number or description.
    Updated,
    /// A courier's report that the state refused: of a failure if it has a reason, else of a completion.
    Conflict {
        reason: Option<FailureReason>,
        remarks: Remarks,
    },
}

named_enum! {
    /// A transition without what else is known of it.
    pub enum TransitionName("transition", ", ") {
        Assigned = "assigned",
        Unassigned = "unassigned",
        Started = "started",
        Done = "done",
        Failed = "failed",
        Cancelled = "cancelled",
        Rescheduled = "rescheduled",
        Reopened = "reopened",
        IncidentReported = "incident-reported",
        IncidentClosed = "incident-closed",
        Updated = "updated",
        Conflict = "conflict",
    }
}

impl Transition {
    pub const fn name(&self) -> TransitionName {
        match self {
            Self::Assigned(_) => TransitionName::Assigned,
            Self::Unassigned => TransitionName::Unassigned,
            Self::Started => TransitionName::Started,
            Self::Done(_) => TransitionName::Done,
            Self::Failed { .. } => TransitionName::Failed,
            Self::Cancelled => TransitionName::Cancelled,
            Self::Rescheduled { .. } => TransitionName::Rescheduled,
            Self::Reopened => TransitionName::Reopened,
            Self::IncidentReported { .. } => TransitionName::IncidentReported,
            Self::IncidentClosed { .. } => TransitionName::IncidentClosed,
            Self::Updated => TransitionName::Updated,
            Self::Conflict { .. } => TransitionName::Conflict,
        }
    }

    /// The transition that turned `before` into `after`; `None` if neither state nor window nor list nor text changed.
    fn between(before: &Task, after: &Task, remarks: &Remarks) -> Option<Self> {
        if before.state == after.state && before.window == after.window {
            let [old, new] = [before.place, after.place].map(|place| Some(place?.list));
            if old == new {
                return after.is_corrected(before).then_some(Self::Updated);
            }
            return Some(new.map_or(Self::Unassigned, |list| Self::Assigned(Some(list))));
        }
        Some(match (&before.state, &after.state) {
            (TaskState::Done, TaskState::Doing) => Self::Reopened,
            (_, TaskState::Doing) => Self::Started,
            (_, TaskState::Done) => Self::Done(remarks.clone()),
            (_, TaskState::Failed(reason)) => Self::Failed {
                reason: reason.clone(),
                notes: remarks.notes.clone(),
            },
            (_, TaskState::Cancelled) => Self::Cancelled,
            (_, TaskState::Todo) => Self::Rescheduled {
                from: before.window,
                to: after.window,
            },
        })
    }
}

impl TaskReport {
    /// The events of the tasks that this report has changed.
    pub fn events(&self, before: &Delivery, after: &Delivery, now: Timestamp) -> Vec<TaskEvent> {
        // Nothing would erase personal data any more.
        let remarks = if after.is_erased {
            &Remarks::default()
        } else {
            &self.remarks
        };
        let events = |(before, task): (&Task, &Task)| {
            let transition = Transition::between(before, task, remarks);
            let closed = (before.open_incidents > task.open_incidents)
                .then_some(Transition::IncidentClosed { notes: None });
            let changed = transition.map(|transition| self.event(after, task, transition, now));
            let closed = closed.map(|closed| self.event(after, task, closed, task.updated_at));
            changed.into_iter().chain(closed)
        };
        let tasks = [
            (&before.pickup, &after.pickup),
            (&before.dropoff, &after.dropoff),
        ];
        tasks.into_iter().flat_map(events).collect()
    }

    /// An event of a task of a delivery.
    pub(crate) fn event(
        &self,
        delivery: &Delivery,
        task: &Task,
        transition: Transition,
        now: Timestamp,
    ) -> TaskEvent {
        TaskEvent {
            task_id: task.id,
            by: self.by,
            api_client_id: (!delivery.is_erased).then_some(self.api_client_id),
            courier_id: self.courier_id.filter(|_| !delivery.is_erased),
            created_at: now,
            occurrence: self.times.occurrence(task.created_at, now),
            transition,
        }
    }
}
