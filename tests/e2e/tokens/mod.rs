//! `POST /oauth2/token`: the client credentials flow (specification: "Authentication", items 2 to
//! 5; "Token response").

mod discovered;
mod issued;
mod rejected;
mod rotated_secrets;

use delivery::Credentials;
use hyper::Request;

use crate::harness::{ApiClient, Mismatches, Response};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const GRANT: &str = "grant_type=client_credentials";

async fn post(
    anonymous: &ApiClient,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<bytes::Bytes>,
) -> Response {
    let mut request = Request::post(anonymous.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    anonymous.send(request, body).await
}

fn check_json(mismatches: &mut Mismatches, case: &str, response: &Response) {
    let content_type = response.header("content-type");
    let is_json = content_type.starts_with("application/json");
    mismatches.check(case, is_json, content_type);
    let has_request_id = !response.header("x-request-id").is_empty();
    mismatches.check(case, has_request_id, "no X-Request-Id");
}

/// Replaces the placeholders of a case: `GRANT`, `LONG`, and the client's `KEY` and `SECRET`, both
/// also with the prefix `ENCODED_`.
fn expand(line: &str, client: &Credentials) -> String {
    line.replace("GRANT", GRANT)
        .replace("LONG", &"x".repeat(100_000))
        .replace("ENCODED_KEY", &percent_encoded(&client.api_key))
        .replace("ENCODED_SECRET", &percent_encoded(&client.api_secret))
        .replace("KEY", &client.api_key)
        .replace("SECRET", &client.api_secret)
}

/// The text with every byte percent-encoded.
fn percent_encoded(text: &str) -> String {
    text.bytes()
        .flat_map(|byte| format!("%{byte:02X}").into_bytes())
        .map(char::from)
        .collect()
}
