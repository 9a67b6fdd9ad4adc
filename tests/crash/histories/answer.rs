//! What a client learns from a request, and how often each kind of answer was seen.

use std::{collections::BTreeMap, fmt, sync::Mutex, time::Duration};

use serde_json::Value;
use tokio::sync::watch;

use crate::failure::Failure;

/// The time in which the platform must serve again after a fault.
pub(super) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(40);

/// A response that shows whether the request was executed.
#[derive(Clone, Debug)]
pub(super) enum RawResponse {
    Success(Value),
    Rejection(Rejection),
}

/// The response to a request that was not executed, with the reason.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) status: u16,
    pub(super) code: String,
    pub(super) body: String,
}

impl Rejection {
    pub(super) fn is(&self, status: u16, code: &str) -> bool {
        (self.status, self.code.as_str()) == (status, code)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.json()["detail"].as_str() {
            Some(detail) => write!(f, "{} {}: {detail}", self.status, self.code),
            None => write!(f, "{} {}", self.status, self.body),
        }
    }
}

/// What became of a request.
pub(super) enum RequestResult {
    Answered(RawResponse),
    /// It may have been executed, or may still be.
    Unknown,
    /// It was not executed, and never will be.
    NotExecuted,
}

impl RequestResult {
    pub(super) fn of(result: Result<Value, Failure>) -> Self {
        let failure = match result {
            Ok(value) => return Self::Answered(RawResponse::Success(value)),
            Err(failure) => failure,
        };
        match failure {
            Failure::ConnectionRefused(_) | Failure::ErrorResponse { status: 429, .. } => {
                Self::NotExecuted
            }
            Failure::ConnectionLost(_) | Failure::IncompleteResponse(_) | Failure::Timeout => {
                Self::Unknown
            }
            // 503, or 409 while a request with the same idempotency key is in flight.
            _ if failure.is_retryable() => Self::Unknown,
            Failure::ErrorResponse { status, body, .. } => {
                let json: Value = serde_json::from_str(&body).unwrap_or_default();
                let code = json["code"].as_str().unwrap_or_default().to_owned();
                Self::Answered(RawResponse::Rejection(Rejection { status, code, body }))
            }
        }
    }
}

/// The number of operations by kind and answer.
#[derive(Default)]
pub(super) struct AnswerCounts {
    counts: Mutex<BTreeMap<String, usize>>,
    answered: watch::Sender<u64>,
}

/// What is counted for an operation without an answer.
pub(super) const UNKNOWN: &str = "unknown";

impl AnswerCounts {
    /// Counts an operation such as `delivery: cancel`, and its answer if there was one.
    pub(super) fn count(&self, operation: &str, answer: Option<&RawResponse>) {
        let answer_text = match answer {
            Some(RawResponse::Success(_)) => "done",
            Some(RawResponse::Rejection(rejection)) => &rejection.code,
            None => UNKNOWN,
        };
        let kind = format!("{operation}, {answer_text}");
        *self.counts.lock().unwrap().entry(kind).or_default() += 1;
        if answer.is_some() {
            self.answered.send_modify(|answered| *answered += 1);
        }
    }

    /// Waits for this many more answers.
    pub(super) async fn wait_for_answers(&self, more: u64) {
        let mut answered = self.answered.subscribe();
        let enough = *answered.borrow() + more;
        let enough = answered.wait_for(|answered| *answered >= enough);
        let in_time = tokio::time::timeout(RECOVERY_TIMEOUT, enough).await.is_ok();
        assert!(in_time, "not {more} more answers: {self}");
    }

    pub(super) fn answered(&self) -> u64 {
        *self.answered.borrow()
    }

    pub(super) fn unknown(&self) -> usize {
        let counts = self.counts.lock().unwrap();
        let unknown = counts.iter().filter(|(kind, _)| kind.ends_with(UNKNOWN));
        unknown.map(|(_, count)| count).sum()
    }

    /// Those of the given kinds that occurred less than `minimum` times.
    pub(super) fn missing<'a>(&self, kinds: &[&'a str], minimum: usize) -> Vec<&'a str> {
        let counts = self.counts.lock().unwrap();
        let is_missing = |kind: &&str| counts.get(*kind).copied().unwrap_or_default() < minimum;
        kinds.iter().copied().filter(is_missing).collect()
    }
}

impl fmt::Display for AnswerCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.counts.lock().unwrap())
    }
}
