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
        courier_id: Some(CourierId::new()),
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
            assert_eq!(event.courier_id, report.courier_id);
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
        assert_eq!(
            (events[0].api_client_id, events[0].courier_id),
            (None, None)
        );
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
