//! `POST /oauth2/token`: the client credentials flow ("Authentication" 2 to 5, "Token response").

mod granted;
mod refused;

use delivery::Credentials;
use hyper::Request;

use crate::harness::{Answer, ApiClient, Faults};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const GRANT: &str = "grant_type=client_credentials";

async fn ask(
    stranger: &ApiClient,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<bytes::Bytes>,
) -> Answer {
    let mut request = Request::post(stranger.url(path));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    stranger.send(request, body).await
}

fn is_json(faults: &mut Faults, case: &str, answer: &Answer) {
    let content_type = answer.header("content-type");
    let is_json = content_type.starts_with("application/json");
    faults.holds(case, is_json, content_type);
    let has_id = !answer.header("x-request-id").is_empty();
    faults.holds(case, has_id, "no X-Request-Id");
}

/// A line of a table with `GRANT`, the client's `KEY` and `SECRET`, and something `LONG`.
fn filled_in(line: &str, client: &Credentials) -> String {
    line.replace("GRANT", GRANT)
        .replace("LONG", &"x".repeat(100_000))
        .replace("ENCODED_KEY", &percent_encoded(&client.api_key))
        .replace("ENCODED_SECRET", &percent_encoded(&client.api_secret))
        .replace("KEY", &client.api_key)
        .replace("SECRET", &client.api_secret)
}

/// Every character escaped, as a form may do.
fn percent_encoded(text: &str) -> String {
    text.bytes()
        .flat_map(|byte| format!("%{byte:02X}").into_bytes())
        .map(char::from)
        .collect()
}
