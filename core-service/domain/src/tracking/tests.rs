//! What the page says in each state, and which token opens it.

use proptest::{collection, prelude::*};

use super::*;
use crate::{
    device_clock::Occurrence,
    fixture,
    id::ApiClientId,
    lifecycle::{Command, Reschedule},
    task::{
        Actor,
        TaskKind::{self, Dropoff, Pickup},
    },
    task_event::{Remarks, Transition},
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn later(hours: i64) -> Timestamp {
    NOW + SignedDuration::from_hours(hours)
}

fn fail(reason: &str) -> Command {
    Command::Fail(reason.parse().unwrap())
}

/// A delivery after commands, an hour apart.
fn delivery(commands: &[(TaskKind, Command)]) -> Delivery {
    let mut delivery = fixture::delivery(1000);
    delivery.tracking = Some(TrackingLink::new([7; 16]));
    for (hours, (kind, command)) in (1..).zip(commands) {
        let applied = delivery.apply(*kind, command, Actor::Dispatch, later(hours));
        applied.unwrap().unwrap();
    }
    delivery
}

#[test]
fn the_stage_follows_what_the_recipient_sees() {
    let (start, complete) = (Command::Start, Command::Complete);
    for (commands, expected) in [
        (vec![], Stage::Ordered),
        (vec![(Pickup, start.clone())], Stage::Ordered),
        (vec![(Pickup, complete.clone())], Stage::Collected),
        (vec![(Dropoff, start.clone())], Stage::OnItsWay),
        (vec![(Dropoff, complete.clone())], Stage::Delivered),
        (
            vec![(Pickup, complete.clone()), (Dropoff, complete)],
            Stage::Delivered,
        ),
        (
            vec![(Pickup, fail("LOST")), (Dropoff, start)],
            Stage::NotDelivered(Obstacle::Other),
        ),
        (
            vec![(Dropoff, fail("NOT_AT_HOME"))],
            Stage::NotDelivered(Obstacle::NobodyThere),
        ),
        (
            vec![(Dropoff, fail("WRONG_ADDR"))],
            Stage::NotDelivered(Obstacle::Address),
        ),
        (
            vec![(Dropoff, fail("REFUSED"))],
            Stage::NotDelivered(Obstacle::Refused),
        ),
        (
            vec![(Dropoff, fail("BITTEN_BY_DOG"))],
            Stage::NotDelivered(Obstacle::Other),
        ),
        (
            vec![(Dropoff, Command::Complete), (Dropoff, Command::Reopen)],
            Stage::OnItsWay,
        ),
    ] {
        assert_eq!(Stage::of(&delivery(&commands)), expected, "{commands:?}");
    }
    let mut cancelled = delivery(&[]);
    cancelled.cancel(Actor::Shop, NOW).unwrap();
    assert_eq!(Stage::of(&cancelled), Stage::Cancelled);
}

#[test]
fn the_street_is_a_house_number_and_a_street_and_nothing_else() {
    let mut address = delivery(&[]).dropoff.address;
    address.postal_code = Some("75004".to_owned());
    for (text, expected) in [
        ("48 Rue de Rivoli, 75004 Paris", Some("48 Rue de Rivoli")),
        (
            "M. Dubois, 12 bis rue d'Alésia\nParis",
            Some("12 bis rue d'Alésia"),
        ),
        ("Hauptstr. 12 a, 10117 Berlin", Some("Hauptstr. 12 a")),
        ("12, rue de la Paix", Some("12 rue de la Paix")),
        (
            "Bât B code 4711, 7-9 quai Voltaire",
            Some("7-9 quai Voltaire"),
        ),
        ("Digicode 4711, Paris", None),
        ("3e étage, Tour A", None),
        ("12 rue X 3e étage code 4711", None),
        ("Zoé Martin, 75004 Paris", None),
        ("Place des Vosges", None),
        ("", None),
    ] {
        address.street_address = text.to_owned();
        assert_eq!(street(&address).as_deref(), expected, "{text}");
    }
}

#[test]
fn the_page_shows_when_something_occurred_and_the_address_until_the_end() {
    let mut tracked = delivery(&[(Pickup, Command::Complete), (Dropoff, Command::Start)]);
    tracked.dropoff.address.street_address = " 48 Rue A, 3rd floor, Paris".to_owned();
    tracked.dropoff.address.locality = Some("Paris".to_owned());
    let event = |task: &Task, at, transition| TaskEvent {
        task_id: task.id,
        by: Actor::Courier,
        api_client_id: Some(ApiClientId::new()),
        courier_id: None,
        created_at: later(9),
        occurrence: Occurrence {
            at,
            is_clamped: false,
        },
        transition,
    };
    let done = Transition::Done(Remarks::default());
    let window = tracked.dropoff.window;
    let moved = Transition::Rescheduled {
        from: window,
        to: window,
    };
    let mut history = vec![
        event(&tracked.dropoff, later(2), Transition::Started),
        event(&tracked.dropoff, later(3), moved),
        event(&tracked.pickup, later(4), done.clone()),
        event(&tracked.dropoff, later(5), Transition::Started),
    ];

    let expected = Tracked {
        stage: Stage::OnItsWay,
        ordered_at: tracked.created_at,
        collected_at: Some(later(4)),
        on_its_way_at: Some(later(5)),
        ended_at: None,
        window: Some(window),
        street: Some("48 Rue A".to_owned()),
        locality: Some("Paris".to_owned()),
    };
    assert_eq!(Tracked::of(&tracked, &history), expected);
    let without_history = Tracked {
        collected_at: Some(later(1)),
        on_its_way_at: Some(later(2)),
        ..expected.clone()
    };
    assert_eq!(Tracked::of(&tracked, &[]), without_history);

    let complete = tracked.apply(Dropoff, &Command::Complete, Actor::Courier, later(9));
    complete.unwrap();
    history.push(event(&tracked.dropoff, later(6), done));
    let ended = Tracked {
        stage: Stage::Delivered,
        ended_at: Some(later(6)),
        window: None,
        street: None,
        locality: None,
        ..expected
    };
    assert_eq!(Tracked::of(&tracked, &history), ended);
}

#[test]
fn a_page_ends_a_week_after_the_delivery_or_a_month_after_its_window() {
    let days = |days: i64| SignedDuration::from_hours(24 * days);
    let open = delivery(&[(Dropoff, fail("NOT_AT_HOME"))]);
    let end = open.dropoff.window.before + days(30);
    let second = SignedDuration::from_secs(1);
    assert!(!is_over(&open, end - second));
    assert!(is_over(&open, end));

    let delivered = delivery(&[(Dropoff, Command::Complete)]);
    let mut cancelled = delivery(&[]);
    cancelled.cancel(Actor::Shop, later(1)).unwrap();
    for ended in [delivered, cancelled] {
        assert!(!is_over(&ended, later(1) + days(7) - second));
        assert!(is_over(&ended, later(1) + days(7)));
        let revoked = Delivery {
            tracking: ended.tracking.map(|link| TrackingLink {
                revoked_at: Some(NOW),
                ..link
            }),
            ..ended
        };
        assert!(is_over(&revoked, later(1)));
        assert!(TrackingToken::of(&revoked).is_none());
    }
}

#[test]
fn a_token_opens_its_own_delivery_and_does_not_show_its_secret() {
    let (own, mut other) = (delivery(&[]), delivery(&[]));
    other.tracking = Some(TrackingLink::new([8; 16]));
    let token = TrackingToken::of(&own).unwrap();

    let read = TrackingToken::parse(&token.to_string()).unwrap();

    assert!(read.is_of(&own));
    assert!(!read.is_of(&other));
    other.dropoff.id = own.dropoff.id;
    assert!(!read.is_of(&other), "another secret");
    other.tracking = None;
    assert!(!read.is_of(&other), "no link");
    assert_eq!(token.to_string().len(), 43);
    assert!(format!("{token:?} {:?}", own.tracking).contains("secret: TrackingSecret"));
    assert!(!format!("{token:?} {:?}", own.tracking).contains("7, 7"));
}

proptest! {
    #[test]
    fn a_text_is_no_token_or_the_text_of_one(text in "[A-Za-z0-9_=+/-]{0,60}|\\PC{0,50}|[A-Za-z0-9_-]{43}") {
        if let Some(token) = TrackingToken::parse(&text) {
            prop_assert_eq!(token.to_string(), text);
        }
    }

    /// Commands of every kind in any order.
    #[test]
    fn the_address_is_shown_until_the_end_only(steps in collection::vec((0..6_usize, any::<bool>()), 0..20)) {
        let mut delivery = delivery(&[]);
        for (command, is_pickup) in steps {
            let kind = if is_pickup { Pickup } else { Dropoff };
            let reschedule = Reschedule { window: delivery.task(kind).window, is_time_slot: false, both: true };
            let commands = [
                Command::Start, Command::Complete, fail("OTHER"), Command::Reopen, Command::Reschedule(reschedule),
            ];
            let _ = match commands.get(command) {
                Some(command) => delivery.apply(kind, command, Actor::Dispatch, NOW),
                None => delivery.cancel(Actor::Dispatch, NOW),
            };

            let tracked = Tracked::of(&delivery, &[]);

            let is_open = matches!(tracked.stage, Stage::Ordered | Stage::Collected | Stage::OnItsWay);
            let shown = [tracked.street.is_some(), tracked.window.is_some(), tracked.ended_at.is_none()];
            prop_assert_eq!(shown, [is_open; 3]);
        }
    }
}
