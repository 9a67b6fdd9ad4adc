//! The formats of `before` ("Task description").

use jiff::SignedDuration;
use serde_json::json;

use super::{draft_with, elapsed};
use crate::harness::{Database, Mismatches, Platform};

/// Values of `before` and the expected instants; the clock is at Thursday 2 April 2020, 11:00 Paris.
const BEFORE: [(&str, &str); 60] = [
    ("2020-04-03T13:00:00+02:00", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03T11:00:00Z", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03T11:00:00.000Z", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03T20:00:00+09:00", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03T06:00:00-05:00", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03T13:00:00", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03T13:00", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03 13:00", "2020-04-03T13:00:00+02:00"),
    ("2020-04-03 13:00:30", "2020-04-03T13:00:30+02:00"),
    ("  2020-04-03 13:00  ", "2020-04-03T13:00:00+02:00"),
    ("2020-12-01 10:00", "2020-12-01T10:00:00+01:00"),
    ("2020-02-29 10:00", "2020-02-29T10:00:00+01:00"),
    // The skipped hour and the repeated hour of daylight saving time.
    ("2021-03-28 02:30", "2021-03-28T03:30:00+02:00"),
    ("2020-10-25 02:30", "2020-10-25T02:30:00+01:00"),
    ("2020-10-25T02:30:00+02:00", "2020-10-25T02:30:00+02:00"),
    ("today 18:00", "2020-04-02T18:00:00+02:00"),
    ("today 18:00:15", "2020-04-02T18:00:15+02:00"),
    ("today 6pm", "2020-04-02T18:00:00+02:00"),
    ("today at 6pm", "2020-04-02T18:00:00+02:00"),
    ("today at 18:00", "2020-04-02T18:00:00+02:00"),
    ("today noon", "2020-04-02T12:00:00+02:00"),
    ("tomorrow 13:00", "2020-04-03T13:00:00+02:00"),
    ("tomorrow 1pm", "2020-04-03T13:00:00+02:00"),
    ("tomorrow 1:30pm", "2020-04-03T13:30:00+02:00"),
    ("tomorrow 1:30 PM", "2020-04-03T13:30:00+02:00"),
    ("tomorrow 12am", "2020-04-03T00:00:00+02:00"),
    ("tomorrow 12pm", "2020-04-03T12:00:00+02:00"),
    ("tomorrow noon", "2020-04-03T12:00:00+02:00"),
    ("tomorrow at noon", "2020-04-03T12:00:00+02:00"),
    ("Tomorrow 9am", "2020-04-03T09:00:00+02:00"),
    ("TOMORROW 9AM", "2020-04-03T09:00:00+02:00"),
    ("thursday 13:00", "2020-04-02T13:00:00+02:00"),
    ("next thursday 13:00", "2020-04-09T13:00:00+02:00"),
    ("friday 18:00", "2020-04-03T18:00:00+02:00"),
    ("friday at 6pm", "2020-04-03T18:00:00+02:00"),
    ("Friday noon", "2020-04-03T12:00:00+02:00"),
    ("monday 9am", "2020-04-06T09:00:00+02:00"),
    ("next monday 09:00", "2020-04-06T09:00:00+02:00"),
    ("next monday at noon", "2020-04-06T12:00:00+02:00"),
    ("next wednesday 12:00", "2020-04-08T12:00:00+02:00"),
    ("wednesday 12:00", "2020-04-08T12:00:00+02:00"),
    ("17:00", "2020-04-02T17:00:00+02:00"),
    ("17:30:15", "2020-04-02T17:30:15+02:00"),
    ("5pm", "2020-04-02T17:00:00+02:00"),
    ("at 6pm", "2020-04-02T18:00:00+02:00"),
    ("noon", "2020-04-02T12:00:00+02:00"),
    ("+2 hours", "2020-04-02T13:00:00+02:00"),
    ("in 2 hours", "2020-04-02T13:00:00+02:00"),
    ("+90 minutes", "2020-04-02T12:30:00+02:00"),
    ("+1 day 3 hours", "2020-04-03T14:00:00+02:00"),
    ("+2 days", "2020-04-04T11:00:00+02:00"),
    ("+2h", "2020-04-02T13:00:00+02:00"),
    ("+1h30", "2020-04-02T12:30:00+02:00"),
    ("+30m", "2020-04-02T11:30:00+02:00"),
    ("+1.5 hours", "2020-04-02T12:30:00+02:00"),
    ("+1d", "2020-04-03T11:00:00+02:00"),
    ("+1w", "2020-04-09T11:00:00+02:00"),
    ("tomorrow 13:00 +1h", "2020-04-03T14:00:00+02:00"),
    ("dans 2h", "2020-04-02T13:00:00+02:00"),
    ("demain matin à 9h", "2020-04-03T09:00:00+02:00"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn before_accepts_iso_8601_and_natural_language_in_the_stores_time_zone() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for (before, expected) in BEFORE {
        let draft = draft_with("dropoff.before", json!(before));
        let response = client.post("/api/deliveries", draft).await;

        mismatches.check_eq(before, response.status, 201);
        let dropoff = &response.json["dropoff"];
        mismatches.check_eq(before, &dropoff["before"], &json!(expected));
        mismatches.check_eq(before, &dropoff["doneBefore"], &json!(expected));
        // "`after` not given: `before` − 15 min."
        let quarter = SignedDuration::from_mins(-15);
        mismatches.check_eq(
            before,
            elapsed(&dropoff["before"], &dropoff["after"]),
            Some(quarter),
        );
        mismatches.check_eq(before, &dropoff["doneAfter"], &dropoff["after"]);
    }

    mismatches.assert_none();
    platform.stop().await;
}
