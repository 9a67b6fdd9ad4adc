//! Places in time slots.

use super::*;

/// A rescheduled delivery, and what its dropoff has booked, with a booking of the first two hours before.
#[test]
fn a_place_in_a_slot_follows_the_dropoff() {
    let hours = |from: i64, to: i64| TimeWindow {
        after: after(60 * from),
        before: after(60 * to),
    };
    let [booked, slot] = [TimeSlotId::new(), TimeSlotId::new()];
    let booking = |time_slot_id, window| {
        Some(Booking {
            time_slot_id,
            window,
        })
    };
    let held = booking(booked, hours(0, 2));
    for (was_cancelled, window, found, expected, taken, released) in [
        (false, hours(0, 2), None, held, None, None),
        (false, hours(1, 2), Some(slot), held, None, None),
        (false, hours(1, 3), None, None, None, held),
        (
            false,
            hours(2, 4),
            Some(slot),
            booking(slot, hours(2, 4)),
            booking(slot, hours(2, 4)),
            held,
        ),
        (true, hours(0, 2), Some(slot), held, held, None),
        (true, hours(1, 3), None, None, None, None),
        (
            true,
            hours(2, 4),
            Some(slot),
            booking(slot, hours(2, 4)),
            booking(slot, hours(2, 4)),
            None,
        ),
    ] {
        let state = if was_cancelled {
            TaskState::Cancelled
        } else {
            TaskState::Todo
        };
        let mut before = delivery(state.clone(), state);
        before.dropoff.window = hours(0, 2);
        before.pickup.window = hours(0, 1);
        before.booking = held;
        let mut changed = before.clone();
        let command = reschedule(window, true);
        let applied = changed.apply(TaskKind::Dropoff, &command, Actor::Dispatch, after(1));
        applied.unwrap();

        let change = changed.rebook(&before, false, |asked| found.filter(|_| asked == window));

        let case = format!("{was_cancelled} {window:?}");
        assert_eq!(changed.booking, expected, "{case}");
        assert_eq!(change, BookingChange { taken, released }, "{case}");
    }
}

#[test]
fn a_requested_slot_within_the_booked_window_is_booked() {
    let mut before = delivery(TaskState::Todo, TaskState::Todo);
    let (earlier, slot) = (TimeSlotId::new(), TimeSlotId::new());
    let window = before.dropoff.window;
    let booking = |time_slot_id| {
        Some(Booking {
            time_slot_id,
            window,
        })
    };
    before.booking = booking(earlier);
    for (is_requested, expected) in [(false, earlier), (true, slot)] {
        let mut changed = before.clone();
        changed.dropoff.has_time_slot = !before.dropoff.has_time_slot;

        changed.rebook(&before, is_requested, |_| Some(slot));

        assert_eq!(changed.booking, booking(expected));
    }
}

#[test]
fn a_cancelled_delivery_releases_its_place_and_a_completed_one_keeps_it() {
    let window = fixture::delivery(1000).dropoff.window;
    let booking = Some(Booking {
        time_slot_id: TimeSlotId::new(),
        window,
    });
    let mut before = delivery(TaskState::Todo, TaskState::Todo);
    before.booking = booking;
    let mut cancelled = before.clone();
    cancelled.cancel(Actor::Shop, after(1)).unwrap();
    let mut done = before.clone();
    let complete = done.apply(
        TaskKind::Dropoff,
        &Command::Complete,
        Actor::Dispatch,
        after(1),
    );
    complete.unwrap();

    let released = cancelled.rebook(&before, false, |_| None);

    let expected = BookingChange {
        taken: None,
        released: booking,
    };
    assert_eq!(released, expected);
    assert_eq!(
        done.rebook(&before, false, |_| None),
        BookingChange::default()
    );
    let again = cancelled.clone().rebook(&cancelled, false, |_| None);
    assert_eq!(again, BookingChange::default());
}
