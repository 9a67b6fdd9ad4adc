//! What couriers report of tasks that they do not have any more, or whose state refuses it: nothing of it is lost.

use jiff::Timestamp;

use crate::{
    delivery::Delivery,
    event::EventName,
    incident::IncidentContent,
    lifecycle::{Command, Refusal},
    task::{Actor, StateName, TaskKind},
    task_event::{TaskEvent, TaskReport, Transition},
};

/// Why dispatch gets an incident with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lateness {
    /// The task was not the courier's own any more.
    Applied,
    /// The state of the task refused it.
    Refused,
}

impl Delivery {
    /// As [`Delivery::apply`], for a courier whose own the task was within the last 24 hours. The state to which the
    /// command leads is a repetition only if this courier has set it.
    pub fn apply_late(
        &mut self,
        kind: TaskKind,
        command: &Command,
        has_set_state: bool,
        now: Timestamp,
    ) -> Result<Option<Vec<EventName>>, Refusal> {
        if !command.is_end() {
            return Err(Refusal::NotAssigned);
        }
        let events = self.apply(kind, command, Actor::Courier, now)?;
        if events.is_none() && !has_set_state {
            return Err(Refusal::State(kind));
        }
        Ok(events)
    }

    /// What the history of a task keeps of a command that its state refused; `None` unless a courier has reported the
    /// end of the task.
    pub fn conflict(
        &mut self,
        kind: TaskKind,
        command: &Command,
        report: &TaskReport,
        now: Timestamp,
    ) -> Option<TaskEvent> {
        // Nothing would erase the texts any more.
        if !command.is_end() || report.by != Actor::Courier || self.is_erased {
            return None;
        }
        let reason = command.reason().cloned();
        let remarks = report.remarks.clone();
        let transition = Transition::Conflict { reason, remarks };
        self.task_mut(kind).updated_at = now;
        Some(report.event(self, self.task(kind), transition, now))
    }
}

impl Lateness {
    /// The incident with which dispatch learns of a report of a task that was in a state.
    pub fn incident(self, command: &Command, state: StateName) -> IncidentContent {
        let word = |state: StateName| state.as_str().to_ascii_uppercase();
        let reported = word(match command {
            Command::Fail(_) => StateName::Failed,
            _ => StateName::Done,
        });
        let (key, why) = match self {
            Self::Applied => ("late", "who does not have the task any more".to_owned()),
            Self::Refused => ("conflict", format!("while the task is {}", word(state))),
        };
        IncidentContent {
            description: Some(format!("{reported} was reported by a courier {why}")),
            reason: command.reason().cloned(),
            metadata: [(key.to_owned(), reported)].into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::{
        device_clock::DeviceTimes,
        fixture,
        id::{ApiClientId, CourierId},
        task::{FailureReason, TaskState},
        task_event::Remarks,
    };

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn later(minutes: i64) -> Timestamp {
        NOW + SignedDuration::from_mins(minutes)
    }

    fn reason() -> FailureReason {
        "NOT_AT_HOME".parse().unwrap()
    }

    fn states() -> [TaskState; 5] {
        [
            TaskState::Todo,
            TaskState::Doing,
            TaskState::Done,
            TaskState::Failed(reason()),
            TaskState::Cancelled,
        ]
    }

    fn report(by: Actor) -> TaskReport {
        TaskReport {
            by,
            api_client_id: ApiClientId::new(),
            courier_id: Some(CourierId::new()),
            times: DeviceTimes {
                occurred: Some(later(-5)),
                sent: None,
            },
            remarks: Remarks {
                notes: Some("Left at the door".to_owned()),
                contact_name: Some("Zoé".to_owned()),
            },
        }
    }

    fn in_state(kind: TaskKind, state: TaskState) -> Delivery {
        let mut delivery = fixture::delivery(1000);
        delivery.task_mut(kind).state = state;
        delivery
    }

    /// The commands with the states to which they lead, if couriers may report them late.
    fn commands() -> [(Command, Option<TaskState>); 4] {
        [
            (Command::Complete, Some(TaskState::Done)),
            (Command::Fail(reason()), Some(TaskState::Failed(reason()))),
            (Command::Start, None),
            (Command::Reopen, None),
        ]
    }

    #[test]
    fn a_late_report_is_applied_to_what_is_open_and_repeated_by_whom_has_set_the_state() {
        for kind in TaskKind::ALL {
            for (command, target) in commands() {
                for (state, has_set_state) in states()
                    .into_iter()
                    .flat_map(|state| [true, false].map(|has_set| (state.clone(), has_set)))
                {
                    let before = in_state(kind, state.clone());
                    let mut after = before.clone();

                    let applied = after.apply_late(kind, &command, has_set_state, later(1));

                    let case = format!("{kind:?} {command:?} {state:?} {has_set_state}");
                    let is_open = matches!(state, TaskState::Todo | TaskState::Doing);
                    match &target {
                        Some(target) if is_open => {
                            assert!(applied.unwrap().is_some(), "{case}");
                            let task = after.task(kind);
                            assert_eq!(&task.state, target, "{case}");
                            assert_eq!(task.state_set_by, Actor::Courier, "{case}");
                            continue;
                        }
                        Some(target) if *target == state && has_set_state => {
                            assert_eq!(applied, Ok(None), "{case}");
                        }
                        Some(_) => assert_eq!(applied, Err(Refusal::State(kind)), "{case}"),
                        None => assert_eq!(applied, Err(Refusal::NotAssigned), "{case}"),
                    }
                    assert_eq!(after, before, "{case}");
                }
            }
        }
    }

    #[test]
    fn the_history_keeps_what_couriers_report_of_an_end_and_the_state_refuses() {
        for kind in TaskKind::ALL {
            for (command, target) in commands() {
                for by in Actor::ALL {
                    let before = in_state(kind, TaskState::Cancelled);
                    let mut after = before.clone();
                    let report = report(by);

                    let kept = after.conflict(kind, &command, &report, later(1));

                    if target.is_none() || by != Actor::Courier {
                        assert_eq!((kept, after), (None, before), "{command:?} {by:?}");
                        continue;
                    }
                    let event = kept.unwrap();
                    let transition = Transition::Conflict {
                        reason: command.reason().cloned(),
                        remarks: report.remarks.clone(),
                    };
                    assert_eq!(event.transition, transition);
                    assert_eq!(event.task_id, before.task(kind).id);
                    assert_eq!(event.courier_id, report.courier_id);
                    assert_eq!((event.by, event.created_at), (by, later(1)));
                    assert_eq!(after.task(kind).updated_at, later(1));
                    assert_eq!(after.task(kind).state, TaskState::Cancelled);
                }
            }
        }
    }

    #[test]
    fn the_history_of_an_erased_delivery_keeps_nothing() {
        let mut delivery = in_state(TaskKind::Pickup, TaskState::Done);
        delivery.is_erased = true;
        let (command, report) = (Command::Fail(reason()), report(Actor::Courier));

        assert_eq!(
            delivery.conflict(TaskKind::Pickup, &command, &report, later(1)),
            None
        );
    }

    #[test]
    fn dispatch_learns_what_was_reported_and_why_it_is_asked() {
        for (command, lateness, description, key, reported) in [
            (
                Command::Complete,
                Lateness::Applied,
                "DONE was reported by a courier who does not have the task any more",
                "late",
                "DONE",
            ),
            (
                Command::Fail(reason()),
                Lateness::Refused,
                "FAILED was reported by a courier while the task is CANCELLED",
                "conflict",
                "FAILED",
            ),
        ] {
            let expected = IncidentContent {
                description: Some(description.to_owned()),
                reason: command.reason().cloned(),
                metadata: [(key.to_owned(), reported.to_owned())].into(),
            };
            assert_eq!(lateness.incident(&command, StateName::Cancelled), expected);
        }
    }
}
