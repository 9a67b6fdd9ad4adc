//! "Time slot choices", `GET /api/time_slots/choices`, and which slots a store accepts.

mod applying;
mod capacity;
mod changed_country;
mod choices;
mod labels;
mod required;

use jiff::Timestamp;
use serde_json::Value;

use crate::harness::{ApiClient, Platform};

const CHOICES: &str = "/api/time_slots/choices";

const LUNCH_AND_AFTERNOON: &str = r#"["Mo-Su 12:00-14:00", "Mo-Su 14:00-17:00"]"#;

fn definition(opening_hours: &str, interval: &str, more: &str) -> String {
    format!(
        "name = \"Tour\"\nopening_hours = {opening_hours}\ninterval = \"{interval}\"\n{more}{}",
        if more.is_empty() { "" } else { "\n" }
    )
}

/// Advances the clock to an instant, which must not be in its past.
fn advance_to(platform: &Platform, now: &str) {
    let now: Timestamp = now.parse().unwrap();
    platform.advance(now.duration_since(platform.now()));
}

async fn values(client: &ApiClient) -> Vec<String> {
    members(&client.get(CHOICES).await.expect(200), "value")
}

fn members(choices: &Value, member: &str) -> Vec<String> {
    choices["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice[member].as_str().unwrap().to_owned())
        .collect()
}

/// One interval for each pair of a date and its times, such as `2020-04-02` and
/// `T10:00:00Z/T12:00:00Z`.
fn intervals(days: &[(&str, &str)]) -> Vec<String> {
    days.iter()
        .map(|(date, times)| {
            let (start, end) = times.split_once('/').unwrap();
            format!("{date}{start}/{date}{end}")
        })
        .collect()
}
