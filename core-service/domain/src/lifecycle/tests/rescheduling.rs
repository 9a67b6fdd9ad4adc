//! New windows of tasks.

use super::*;

#[test]
fn a_rescheduled_pickup_does_not_end_later_than_its_dropoff() {
    let before = delivery(TaskState::Todo, TaskState::Todo);
    let later = |window: TimeWindow| TimeWindow {
        after: window.after + SignedDuration::from_mins(60),
        before: window.before + SignedDuration::from_mins(60),
    };
    let window = later(before.pickup.window);
    let apply = |both| {
        let mut delivery = before.clone();
        let command = reschedule(window, both);
        let applied = delivery.apply(TaskKind::Pickup, &command, Actor::Dispatch, after(1));
        applied.map(|_| [delivery.pickup.window, delivery.dropoff.window])
    };

    assert_eq!(apply(false), Err(Refusal::OutOfOrder));
    assert_eq!(apply(true), Ok([window, later(before.dropoff.window)]));
    let beyond = TimeWindow {
        after: Timestamp::MIN,
        before: Timestamp::MIN + SignedDuration::from_secs(1),
    };
    let mut delivery = before.clone();
    let command = reschedule(beyond, true);
    let applied = delivery.apply(TaskKind::Pickup, &command, Actor::Dispatch, after(1));
    assert_eq!(applied, Err(Refusal::OutOfRange));
    assert_eq!(delivery, before);
}

#[test]
fn a_dropoff_moves_anywhere_once_its_pickup_is_done() {
    let mut delivery = delivery(TaskState::Done, TaskState::Todo);
    let window = TimeWindow {
        after: START,
        before: delivery.pickup.window.before - SignedDuration::from_mins(1),
    };

    let command = reschedule(window, false);
    let applied = delivery.apply(TaskKind::Dropoff, &command, Actor::Dispatch, after(1));

    assert_eq!(applied, Ok(Some(vec![EventName::DeliveryRescheduled])));
    assert_eq!(delivery.dropoff.window, window);
}

#[test]
fn both_tasks_are_to_be_done_again_although_one_does_not_move() {
    let mut delivery = delivery(TaskState::Todo, TaskState::Failed(reason()));
    let command = reschedule(delivery.pickup.window, true);

    let applied = delivery.apply(TaskKind::Pickup, &command, Actor::Dispatch, after(1));

    assert_eq!(applied, Ok(Some(vec![EventName::DeliveryRescheduled])));
    assert_eq!(delivery.dropoff.state, TaskState::Todo);
    let repeated = delivery.apply(TaskKind::Pickup, &command, Actor::Dispatch, after(2));
    assert_eq!(repeated, Ok(None));
}
