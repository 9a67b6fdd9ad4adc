//! Rules of all endpoints: authorization, media types, the format of errors ("Endpoints",
//! "Authentication", "Errors").

mod authorization;
mod languages;
mod media_types;
mod messages;
mod query_parameters;
mod request_ids;
mod resources;

use crate::harness::{ApiClient, UNKNOWN_ID, iri, short_draft as draft};

fn bearer(client: &ApiClient) -> String {
    format!("Bearer {}", client.token())
}
