//! `Idempotency-Key`: a request may be sent again, and is done once.

mod creating;
mod webhooks;

use hyper::{HeaderMap, Method};
use serde_json::Value;

use crate::harness::{
    Answer, ApiClient,
    assertions::{assert_error, json_ld},
};

/// How many send the same request at once.
const TWINS: usize = 64;

/// Sends a request under a key. Who is told after two seconds that another is still at it comes
/// again: on a busy machine so many at once may take longer.
async fn post(client: &ApiClient, path: &str, key: &str, body: &Value) -> Answer {
    loop {
        let request = client
            .request(Method::POST, path)
            .header("idempotency-key", key);
        let answer = client.send(request, body.to_string()).await;
        if answer.json["code"] != "idempotency_key_in_use" {
            return answer;
        }
        assert_error(&answer, 409);
        assert_eq!(answer.header("retry-after"), "1");
    }
}

/// The headers, without those that every answer has anew.
fn headers(answer: &Answer) -> HeaderMap {
    let mut headers = answer.headers.clone();
    for name in ["date", "x-request-id", "idempotent-replayed"] {
        headers.remove(name);
    }
    headers
}

fn is_replay(answer: &Answer) -> bool {
    answer.header("idempotent-replayed") == "true"
}

#[track_caller]
fn assert_again(first: &Answer, again: &Answer) {
    assert_eq!(again.status, first.status);
    assert_eq!(again.body, first.body);
    assert_eq!(headers(again), headers(first));
    assert!(is_replay(again) && !is_replay(first));
}

/// All have one answer, with this status, and all but one say that it was given before.
#[track_caller]
fn assert_one(answers: &[Answer], status: u16) -> &Answer {
    let first = assert_one_body(answers, status);
    for again in answers.iter().filter(|answer| is_replay(answer)) {
        assert_again(first, again);
    }
    first
}

/// As [`assert_one`], of gateways each of which has an address of its own in its headers.
#[track_caller]
fn assert_one_body(answers: &[Answer], status: u16) -> &Answer {
    let first: Vec<_> = answers.iter().filter(|answer| !is_replay(answer)).collect();
    assert_eq!(first.len(), 1, "{:?}", answers[0].json);
    for answer in answers {
        assert_eq!(json_ld(answer, status), first[0].json);
        assert_eq!(answer.body, first[0].body);
    }
    first[0]
}
