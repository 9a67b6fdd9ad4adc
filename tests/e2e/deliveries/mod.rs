//! `/api/deliveries`: create, read, list and assert.

mod addresses;
mod asserting;
mod bad_input;
mod before;
mod contacts;
mod creating;
pub(crate) mod filtering;
mod geocoders;
mod hostile_bodies;
mod hostile_values;
mod in_time_slots;
mod large_pages;
mod listing;
mod quantities;
mod quota;
mod references;
mod service_area;
mod times;
mod warnings;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::harness::short_draft as draft;

fn dropoff() -> Value {
    draft()["dropoff"].take()
}

/// The smallest valid draft with one member set. A member of the address turns the address into an
/// object with coordinates.
fn draft_with(path: &str, value: Value) -> Value {
    let mut draft = draft();
    if path.starts_with("dropoff.address.") {
        draft["dropoff"]["address"] =
            json!({ "streetAddress": "By the river", "latLng": [48.8566, 2.3522] });
    }
    let member = path
        .split('.')
        .fold(&mut draft, |parent, name| &mut parent[name]);
    *member = value;
    draft
}

/// The duration between two timestamps in JSON.
fn elapsed(from: &Value, to: &Value) -> Option<SignedDuration> {
    let [from, to] = [from, to].map(|timestamp| timestamp.as_str()?.parse::<Timestamp>().ok());
    Some(to?.duration_since(from?))
}
