//! The event log: `GET /api/events`, and the stream for the platform's own programs.

mod created;
mod listing;
mod numbering;
mod watching;

use std::time::Duration;

use serde_json::Value;

use crate::harness::{ApiClient, deliver, draft, iri};

/// Far longer than numbering takes.
const TIMEOUT: Duration = Duration::from_mins(1);

const EVENTS: &str = "/api/events";

/// The first page of the log, once the newest event has this number.
pub(crate) async fn wait_for_number(client: &ApiClient, last: i64) -> Value {
    client
        .wait_until(EVENTS, |page| {
            (page["lastNumber"].as_i64() >= Some(last)).then_some(page)
        })
        .await
}

/// Every event after a number, read page by page, as a shop does after an outage.
async fn catch_up(client: &ApiClient, after: i64) -> Vec<Value> {
    let mut events = Vec::new();
    let mut path = Some(format!("{EVENTS}?itemsPerPage=100&after={after}"));
    while let Some(next) = path {
        let page = client.get(&next).await.expect(200);
        events.extend(page["hydra:member"].as_array().unwrap().iter().cloned());
        path = page["hydra:view"]["hydra:next"].as_str().map(str::to_owned);
    }
    events
}
