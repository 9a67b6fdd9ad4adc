//! Rules of all endpoints: authorization, media types, the format of errors ("Endpoints",
//! "Authentication", "Errors").

mod authorization;
mod media_types;
mod query_parameters;
mod request_ids;
mod resources;

use serde_json::{Value, json};

use crate::harness::{ApiClient, iri};

/// The id of no resource.
const UNKNOWN_ID: &str = "01932e5c-9f4a-7000-8000-00000000000a";

fn draft() -> Value {
    json!({ "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" } })
}

fn bearer(client: &ApiClient) -> String {
    format!("Bearer {}", client.token())
}
