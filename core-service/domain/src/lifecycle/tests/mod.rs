mod booking;
mod rescheduling;

use proptest::{collection, prelude::*, sample};

use super::*;
use crate::fixture;

const START: Timestamp = Timestamp::UNIX_EPOCH;
const ACTORS: [Actor; 3] = [Actor::Shop, Actor::Courier, Actor::Dispatch];
const KINDS: [TaskKind; 2] = [TaskKind::Pickup, TaskKind::Dropoff];

fn after(minutes: i64) -> Timestamp {
    START + SignedDuration::from_mins(minutes)
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

fn commands(window: TimeWindow) -> [Command; 6] {
    [
        Command::Start,
        Command::Complete,
        Command::Fail(reason()),
        Command::Reopen,
        reschedule(window, false),
        reschedule(window, true),
    ]
}

fn reschedule(window: TimeWindow, both: bool) -> Command {
    Command::Reschedule(Reschedule {
        window,
        is_time_slot: false,
        both,
    })
}

/// A delivery whose tasks got these states from a courier at the start.
fn delivery(pickup: TaskState, dropoff: TaskState) -> Delivery {
    let mut delivery = fixture::delivery(1000);
    for (task, state) in [
        (&mut delivery.pickup, pickup),
        (&mut delivery.dropoff, dropoff),
    ] {
        set_state(task, state, Actor::Courier, START);
    }
    delivery
}

/// The window of a task a minute away from the other task's.
fn moved(task: &Task) -> TimeWindow {
    let minute = match task.kind {
        TaskKind::Pickup => SignedDuration::from_mins(-1),
        TaskKind::Dropoff => SignedDuration::from_mins(1),
    };
    TimeWindow {
        after: task.window.after + minute,
        before: task.window.before + minute,
    }
}

fn other(kind: TaskKind) -> TaskKind {
    match kind {
        TaskKind::Pickup => TaskKind::Dropoff,
        TaskKind::Dropoff => TaskKind::Pickup,
    }
}

/// The state that a command leads to, by the table of the commands; `None` if it is refused.
fn target(command: &Command, from: &TaskState, other: &TaskState) -> Option<TaskState> {
    use TaskState::{Cancelled, Doing, Done, Failed, Todo};
    match (command, from) {
        (Command::Start, Todo | Doing) | (Command::Reopen, Doing) => Some(Doing),
        (Command::Complete, Todo | Doing | Done) => Some(Done),
        (Command::Fail(_), Todo | Doing | Failed(_)) => Some(Failed(reason())),
        (Command::Reopen, Done) => (*other != Done).then_some(Doing),
        (Command::Reschedule(to), Todo | Doing | Failed(_) | Cancelled) => {
            (to.both || *other != Cancelled).then_some(Todo)
        }
        _ => None,
    }
}

#[test]
fn every_command_in_every_state_by_every_actor_does_what_the_table_says() {
    let (mut transitions, mut repeats, mut refusals) = (0, 0, 0);
    for kind in KINDS {
        for (from, of_other) in states()
            .into_iter()
            .flat_map(|from| states().map(|other| (from.clone(), other)))
        {
            let before = match kind {
                TaskKind::Pickup => delivery(from.clone(), of_other.clone()),
                TaskKind::Dropoff => delivery(of_other.clone(), from.clone()),
            };
            for (command, by) in commands(moved(before.task(kind)))
                .into_iter()
                .flat_map(|command| ACTORS.map(|by| (command.clone(), by)))
            {
                let mut changed = before.clone();
                let applied = changed.apply(kind, &command, by, after(1));

                let is_for = match command {
                    Command::Reschedule(_) => by == Actor::Dispatch,
                    _ => by != Actor::Shop,
                };
                let expected = target(&command, &from, &of_other);
                let case = format!("{kind:?} {from:?} {of_other:?} {command:?} {by:?}");
                match applied {
                    Ok(Some(events)) => {
                        transitions += 1;
                        assert!(is_for, "{case}");
                        assert_eq!(Some(&changed.task(kind).state), expected.as_ref(), "{case}");
                        assert_eq!(changed.task(kind).state_since, after(1), "{case}");
                        assert_eq!(changed.task(kind).state_set_by, by, "{case}");
                        assert!(!events.is_empty(), "{case}");
                        let moves_other = matches!(command, Command::Reschedule(to) if to.both);
                        let (other, before) = (changed.task(other(kind)), before.task(other(kind)));
                        if moves_other && of_other != TaskState::Done {
                            assert_eq!(other.state, TaskState::Todo, "{case}");
                            assert_eq!(other.window, changed.task(kind).window, "{case}");
                            assert_eq!(other.updated_at, after(1), "{case}");
                        } else {
                            assert_eq!(other, before, "{case}");
                        }
                    }
                    Ok(None) => {
                        repeats += 1;
                        assert!(is_for && expected.as_ref() == Some(&from), "{case}");
                        assert_eq!(changed, before, "{case}");
                    }
                    Err(refusal) => {
                        refusals += 1;
                        assert!(!is_for || expected.is_none(), "{case}");
                        assert_eq!(refusal == Refusal::Forbidden, !is_for, "{case}");
                        assert_eq!(changed, before, "{case}");
                    }
                }
            }
        }
    }
    assert_eq!((transitions, repeats, refusals), (188, 80, 632));
}

#[test]
fn each_transition_has_its_events() {
    use EventName::{
        DeliveryCompleted, DeliveryDropped, DeliveryFailed, DeliveryInTransit, DeliveryPicked,
        DeliveryReopened, DeliveryRescheduled, DeliveryStarted,
    };
    use TaskKind::{Dropoff, Pickup};
    let window = moved(&fixture::delivery(1000).dropoff);
    for (kind, command, of_other, expected) in [
        (
            Pickup,
            Command::Start,
            TaskState::Todo,
            vec![DeliveryStarted],
        ),
        (
            Dropoff,
            Command::Start,
            TaskState::Todo,
            vec![DeliveryInTransit],
        ),
        (
            Pickup,
            Command::Complete,
            TaskState::Todo,
            vec![DeliveryPicked],
        ),
        (
            Pickup,
            Command::Complete,
            TaskState::Done,
            vec![DeliveryPicked, DeliveryCompleted],
        ),
        (
            Dropoff,
            Command::Complete,
            TaskState::Todo,
            vec![DeliveryDropped],
        ),
        (
            Dropoff,
            Command::Complete,
            TaskState::Done,
            vec![DeliveryCompleted],
        ),
        (
            Pickup,
            Command::Fail(reason()),
            TaskState::Todo,
            vec![DeliveryFailed],
        ),
        (
            Dropoff,
            Command::Fail(reason()),
            TaskState::Done,
            vec![DeliveryFailed],
        ),
        (
            Dropoff,
            reschedule(window, false),
            TaskState::Done,
            vec![DeliveryRescheduled],
        ),
    ] {
        let mut delivery = match kind {
            Pickup => delivery(TaskState::Todo, of_other),
            Dropoff => delivery(of_other, TaskState::Todo),
        };
        let applied = delivery.apply(kind, &command, Actor::Dispatch, after(1));
        assert_eq!(applied, Ok(Some(expected)), "{kind:?} {command:?}");
    }
    let mut delivery = delivery(TaskState::Done, TaskState::Todo);
    let reopened = delivery.apply(Pickup, &Command::Reopen, Actor::Dispatch, after(1));
    assert_eq!(reopened, Ok(Some(vec![DeliveryReopened])));
}

#[test]
fn a_courier_reopens_what_a_courier_completed_for_ten_minutes() {
    for (completed_by, minutes, by, expected) in [
        (Actor::Courier, 10, Actor::Courier, true),
        (Actor::Courier, 11, Actor::Courier, false),
        (Actor::Dispatch, 1, Actor::Courier, false),
        (Actor::Courier, 600, Actor::Dispatch, true),
    ] {
        let mut delivery = delivery(TaskState::Doing, TaskState::Todo);
        let complete = delivery.apply(TaskKind::Pickup, &Command::Complete, completed_by, START);
        complete.unwrap();

        let reopened = delivery.apply(TaskKind::Pickup, &Command::Reopen, by, after(minutes));

        assert_eq!(
            reopened.is_ok(),
            expected,
            "{completed_by:?} {minutes} {by:?}"
        );
    }
}

#[test]
fn a_delivery_is_cancelled_once_with_both_its_tasks() {
    for (pickup, dropoff) in states()
        .into_iter()
        .flat_map(|pickup| states().map(|dropoff| (pickup.clone(), dropoff)))
    {
        for by in ACTORS {
            let before = delivery(pickup.clone(), dropoff.clone());
            let mut cancelled = before.clone();
            let states = [&pickup, &dropoff];
            let expected = match by {
                Actor::Courier => Err(Refusal::Forbidden),
                _ if states == [&TaskState::Cancelled; 2] => Ok(None),
                Actor::Shop if states != [&TaskState::Todo; 2] => {
                    let is_pickup = pickup != TaskState::Todo;
                    Err(Refusal::State(KINDS[usize::from(!is_pickup)]))
                }
                Actor::Dispatch if states.contains(&&TaskState::Done) => {
                    let is_pickup = pickup == TaskState::Done;
                    Err(Refusal::State(KINDS[usize::from(!is_pickup)]))
                }
                _ => Ok(Some(vec![EventName::DeliveryCancelled])),
            };

            assert_eq!(
                cancelled.cancel(by, after(1)),
                expected,
                "{states:?} {by:?}"
            );
            if expected.is_ok_and(|events| events.is_some()) {
                assert_eq!(cancelled.state(), DeliveryState::Cancelled);
                assert_eq!(cancelled.cancelled_at(), Some(after(1)));
            } else {
                assert_eq!(cancelled, before);
            }
        }
    }
}

#[test]
fn an_erased_delivery_can_only_end() {
    let mut before = delivery(TaskState::Doing, TaskState::Todo);
    before.is_erased = true;
    for command in commands(moved(&before.pickup)) {
        let mut changed = before.clone();

        let applied = changed.apply(TaskKind::Pickup, &command, Actor::Dispatch, after(1));

        let is_end = matches!(command, Command::Complete | Command::Fail(_));
        assert_eq!(applied == Err(Refusal::Erased), !is_end, "{command:?}");
    }
    assert!(before.cancel(Actor::Dispatch, after(1)).is_ok());
}

#[test]
fn the_state_of_a_delivery_is_that_of_its_tasks() {
    use DeliveryState as State;
    // Of one cancelled task alone nothing is said.
    let [todo, doing, done, failed, _] = states();
    let open = [todo, doing, done, failed];
    let expected = [
        [State::Created, State::InTransit, State::Dropped],
        [State::Started, State::InTransit, State::Dropped],
        [State::Picked, State::InTransit, State::Completed],
    ];
    for (row, pickup) in open.iter().enumerate() {
        for (column, dropoff) in open.iter().enumerate() {
            let expected = expected.get(row).and_then(|row| row.get(column));
            let expected = *expected.unwrap_or(&State::Failed);
            let state = delivery(pickup.clone(), dropoff.clone()).state();
            assert_eq!(state, expected, "{pickup:?} {dropoff:?}");
        }
    }
    let cancelled = delivery(TaskState::Cancelled, TaskState::Cancelled).state();
    assert_eq!(cancelled, State::Cancelled);
}

proptest! {
    /// Commands of every kind in any order, minutes apart.
    #[test]
    fn a_delivery_is_completed_at_most_once_and_then_never_changes(
        steps in collection::vec(
            (0..7_usize, any::<bool>(), sample::select(&ACTORS[..]), 0..20_i64),
            1..40,
        ),
    ) {
        let mut delivery = fixture::delivery(1000);
        let mut now = START;
        let mut events = Vec::new();
        let mut completed = None;
        for (command, is_pickup, by, minutes) in steps {
            now += SignedDuration::from_mins(minutes);
            let kind = KINDS[usize::from(!is_pickup)];
            let window = delivery.task(kind).window;
            let applied = match commands(window).get(command) {
                Some(command) => delivery.apply(kind, command, by, now),
                None => delivery.cancel(by, now),
            };
            events.extend(applied.ok().flatten().unwrap_or_default());
            if let Some(completed) = &completed {
                prop_assert_eq!(&delivery, completed);
            } else if delivery.state() == DeliveryState::Completed {
                completed = Some(delivery.clone());
            }
            let is_cancelled = |task: &Task| task.state == TaskState::Cancelled;
            prop_assert_eq!(is_cancelled(&delivery.pickup), is_cancelled(&delivery.dropoff));
        }
        let count = events.iter().filter(|event| **event == EventName::DeliveryCompleted).count();
        prop_assert_eq!(count, usize::from(completed.is_some()));
    }
}
