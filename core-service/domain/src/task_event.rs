//! The history of a task: its transitions, each with who reported it and when it occurred.

use jiff::Timestamp;

use crate::{
    courier::ListKey,
    delivery::Delivery,
    device_clock::{DeviceTimes, Occurrence},
    id::{ApiClientId, TaskId},
    named_enum::named_enum,
    task::{Actor, FailureReason, Task, TaskState, TimeWindow},
};

/// What comes with a command, besides what it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskReport {
    pub by: Actor,
    pub api_client_id: ApiClientId,
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
        }
    }

    /// The transition that turned `before` into `after`; `None` if neither state nor window nor list changed.
    fn between(before: &Task, after: &Task, remarks: &Remarks) -> Option<Self> {
        if before.state == after.state && before.window == after.window {
            let [old, new] = [before.place, after.place].map(|place| Some(place?.list));
            return (old != new)
                .then(|| new.map_or(Self::Unassigned, |list| Self::Assigned(Some(list))));
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
            created_at: now,
            occurrence: self.times.occurrence(task.created_at, now),
            transition,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::{collection, prelude::*, sample};

    use super::*;
    use crate::{
        fixture,
        lifecycle::{Command, Reschedule},
        task::{StateName, TaskKind},
    };

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn report() -> TaskReport {
        TaskReport {
            by: Actor::Dispatch,
            api_client_id: ApiClientId::new(),
            times: DeviceTimes::default(),
            remarks: Remarks {
                notes: Some("Left at the door".to_owned()),
                contact_name: Some("Ada".to_owned()),
            },
        }
    }

    fn fail() -> Command {
        Command::Fail("DOG_BITES".parse().unwrap())
    }

    fn later(window: TimeWindow) -> TimeWindow {
        let hour = SignedDuration::from_hours(1);
        TimeWindow {
            after: window.after + hour,
            before: window.before + hour,
        }
    }

    fn reschedule(window: TimeWindow) -> Command {
        Command::Reschedule(Reschedule {
            window: later(window),
            is_time_slot: false,
            both: true,
        })
    }

    /// The events of a command on the pickup.
    fn apply(delivery: &mut Delivery, command: &Command, report: &TaskReport) -> Vec<TaskEvent> {
        let before = delivery.clone();
        let applied = delivery.apply(TaskKind::Pickup, command, report.by, NOW);
        applied.unwrap();
        report.events(&before, delivery, NOW)
    }

    #[test]
    fn each_command_has_an_event_with_its_data_for_each_task_that_it_changes() {
        let report = report();
        let mut delivery = fixture::delivery(1000);
        let window = delivery.pickup.window;
        let (pickup, dropoff) = (delivery.pickup.id, delivery.dropoff.id);
        let notes = report.remarks.notes.clone();
        let reason = "DOG_BITES".parse().unwrap();
        let moved = Transition::Rescheduled {
            from: window,
            to: later(window),
        };
        for (command, expected) in [
            (Command::Start, vec![(pickup, Transition::Started)]),
            (Command::Start, vec![]),
            (
                Command::Complete,
                vec![(pickup, Transition::Done(report.remarks.clone()))],
            ),
            (Command::Reopen, vec![(pickup, Transition::Reopened)]),
            (fail(), vec![(pickup, Transition::Failed { reason, notes })]),
            (
                reschedule(window),
                vec![(pickup, moved.clone()), (dropoff, moved)],
            ),
        ] {
            let events = apply(&mut delivery, &command, &report);

            let found: Vec<_> = events
                .iter()
                .map(|event| (event.task_id, event.transition.clone()))
                .collect();
            assert_eq!(found, expected, "{command:?}");
            for event in &events {
                assert_eq!(event.api_client_id, Some(report.api_client_id));
                assert_eq!((event.by, event.created_at), (Actor::Dispatch, NOW));
            }
        }
        let before = delivery.clone();
        delivery.cancel(Actor::Shop, NOW).unwrap();
        let cancelled = report.events(&before, &delivery, NOW);
        let cancelled = cancelled.iter().map(|event| event.transition.name());
        assert_eq!(
            cancelled.collect::<Vec<_>>(),
            [TransitionName::Cancelled; 2]
        );
    }

    /// The window is named as a time slot, which the task did not have.
    #[test]
    fn a_reschedule_to_the_same_window_is_not_in_the_history() {
        let mut delivery = fixture::delivery(1000);
        let command = Command::Reschedule(Reschedule {
            window: delivery.pickup.window,
            is_time_slot: true,
            both: false,
        });
        let before = delivery.clone();

        assert_eq!(apply(&mut delivery, &command, &report()), []);

        assert_ne!(delivery, before);
    }

    #[test]
    fn a_reschedule_closes_the_incidents_of_the_tasks_that_it_moves_right_after_it() {
        let later_than_now = NOW + SignedDuration::from_micros(1);
        for (both, of_dropoff) in [(false, 2), (true, 0)] {
            let mut delivery = fixture::delivery(1000);
            delivery.dropoff.window = later(delivery.dropoff.window);
            delivery.pickup.open_incidents = 1;
            delivery.dropoff.open_incidents = 2;
            let before = delivery.clone();
            let window = later(delivery.pickup.window);
            let command = Command::Reschedule(Reschedule {
                window,
                is_time_slot: false,
                both,
            });

            let events = apply(&mut delivery, &command, &report());

            let open = [&delivery.pickup, &delivery.dropoff].map(|task| task.open_incidents);
            assert_eq!(open, [0, of_dropoff]);
            let of = |task: &Task| {
                let events = events.iter().filter(|event| event.task_id == task.id);
                let events = events.map(|event| (event.transition.name(), event.created_at));
                events.collect::<Vec<_>>()
            };
            let expected = [
                (TransitionName::Rescheduled, NOW),
                (TransitionName::IncidentClosed, later_than_now),
            ];
            assert_eq!(of(&delivery.pickup), expected);
            assert_eq!(delivery.pickup.updated_at, later_than_now);
            if both {
                assert_eq!(of(&delivery.dropoff), expected);
            } else {
                assert_eq!(delivery.dropoff, before.dropoff);
            }
        }
    }

    #[test]
    fn the_history_of_an_erased_delivery_gets_no_personal_data() {
        for command in [Command::Complete, fail()] {
            let mut delivery = fixture::delivery(1000);
            delivery.is_erased = true;

            let events = apply(&mut delivery, &command, &report());

            let expected = match command {
                Command::Complete => Transition::Done(Remarks::default()),
                _ => Transition::Failed {
                    reason: "OTHER".parse().unwrap(),
                    notes: None,
                },
            };
            assert_eq!(events[0].transition, expected);
            assert_eq!(events[0].api_client_id, None);
        }
    }

    proptest! {
        /// Commands of every kind in any order: the last event of a task leads to its state.
        #[test]
        fn every_change_of_a_task_is_in_its_history(
            steps in collection::vec((0..6_usize, any::<bool>(), sample::select(&Actor::ALL[..])), 1..40),
        ) {
            let mut delivery = fixture::delivery(1000);
            for (command, is_pickup, by) in steps {
                let before = delivery.clone();
                let kind = if is_pickup { TaskKind::Pickup } else { TaskKind::Dropoff };
                let window = delivery.task(kind).window;
                let commands = [Command::Start, Command::Complete, fail(), Command::Reopen, reschedule(window)];
                let applied = match commands.get(command) {
                    Some(command) => delivery.apply(kind, command, by, NOW),
                    None => delivery.cancel(by, NOW),
                };

                let events = TaskReport { by, ..report() }.events(&before, &delivery, NOW);

                prop_assert_eq!(!events.is_empty(), matches!(applied, Ok(Some(_))));
                for event in events {
                    let kind = if event.task_id == delivery.pickup.id { TaskKind::Pickup } else { TaskKind::Dropoff };
                    let state = match event.transition.name() {
                        TransitionName::Started | TransitionName::Reopened => StateName::Doing,
                        TransitionName::Done => StateName::Done,
                        TransitionName::Failed => StateName::Failed,
                        TransitionName::Cancelled => StateName::Cancelled,
                        TransitionName::Rescheduled => StateName::Todo,
                        other => panic!("{other:?}"),
                    };
                    prop_assert_eq!(delivery.task(kind).state.name(), state);
                }
            }
        }
    }
}
