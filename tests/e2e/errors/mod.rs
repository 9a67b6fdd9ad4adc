//! What all endpoints share: who may call them, media types, the form of failures ("Endpoints",
//! "Authentication", "Errors").

mod callers;
mod media_types;
mod request_ids;
mod resources;

use serde_json::{Value, json};

use crate::harness::{ApiClient, iri};

/// An id that nothing has.
const UNUSED: &str = "01932e5c-9f4a-7000-8000-00000000000a";

fn order() -> Value {
    json!({ "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" } })
}

fn bearer(client: &ApiClient) -> String {
    format!("Bearer {}", client.token())
}
