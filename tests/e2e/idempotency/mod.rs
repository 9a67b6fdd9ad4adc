//! `Idempotency-Key`: a repeated request takes effect once.

mod creating;
mod webhooks;

use hyper::HeaderMap;
use serde_json::Value;

use crate::harness::{ApiClient, Mismatches, Response, assertions::json_ld};

/// How many clients send the same request at once.
const CONCURRENT_REQUESTS: usize = 64;

/// Sends a request with a key, and repeats it while the platform reports another one in progress:
/// on a busy machine many concurrent requests may take longer than the two seconds for which the
/// platform waits.
async fn post(client: &ApiClient, path: &str, key: &str, body: &Value) -> Response {
    loop {
        let response = client.post_with_key(path, key, body).await;
        if response.json["code"] != "idempotency_key_in_use" {
            return response;
        }
        assert_in_use(&response);
    }
}

/// Checks that a response asks to repeat the request, because another with its key is in progress.
#[track_caller]
fn assert_in_use(response: &Response) {
    let mut mismatches = Mismatches::default();
    mismatches.check_error("in use", response, 409);
    mismatches.assert_none();
    assert_eq!(response.json["code"], "idempotency_key_in_use");
    assert_eq!(response.json["retryable"], true);
    assert_eq!(response.header("retry-after"), "1");
}

/// The headers, without those that differ between responses.
fn headers(response: &Response) -> HeaderMap {
    let mut headers = response.headers.clone();
    for name in ["date", "x-request-id", "idempotent-replayed"] {
        headers.remove(name);
    }
    headers
}

fn is_replay(response: &Response) -> bool {
    response.header("idempotent-replayed") == "true"
}

#[track_caller]
fn assert_replayed(first: &Response, again: &Response) {
    assert_eq!(again.status, first.status);
    assert_eq!(again.body, first.body);
    assert_eq!(headers(again), headers(first));
    assert!(is_replay(again) && !is_replay(first));
}

/// Checks that all responses are equal, with this status, and all but one are replays.
#[track_caller]
fn assert_one_effect(responses: &[Response], status: u16) -> &Response {
    let first = assert_one_effect_in_bodies(responses, status);
    for again in responses.iter().filter(|response| is_replay(response)) {
        assert_replayed(first, again);
    }
    first
}

/// Like [`assert_one_effect`], without the headers: those contain the address of each gateway.
#[track_caller]
fn assert_one_effect_in_bodies(responses: &[Response], status: u16) -> &Response {
    let first: Vec<_> = responses
        .iter()
        .filter(|response| !is_replay(response))
        .collect();
    assert_eq!(first.len(), 1, "{:?}", responses[0].json);
    for response in responses {
        assert_eq!(json_ld(response, status), first[0].json);
        assert_eq!(response.body, first[0].body);
    }
    first[0]
}
