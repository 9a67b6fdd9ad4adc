//! The platform as its clients use it in histories.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::answer::{AnswerCounts, RECOVERY_TIMEOUT};
use crate::{
    caller::{Caller, iri},
    failure::Failure,
};

const DELIVERIES: &str = "/api/deliveries";
const ASSERT: &str = "/api/deliveries/assert";
const CALCULATE: &str = "/api/retail_prices/calculate";
const TIME_SLOT_CHOICES: &str = "/api/time_slots/choices";

/// An immediate retry would take processor time from the recovering platform.
pub(super) const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);

/// The `before` of the first dropoff, 2021-01-01T00:00:00Z.
const FIRST_DROPOFF: i64 = 1_609_459_200;

/// Time slot choices that may begin during the test, when they are no longer offered.
const SOONEST_CHOICES: usize = 12;

pub(super) struct Platform {
    shop: Caller,
    dispatch_board: Caller,
    /// Time slot choices that no history has used.
    slots: Mutex<Vec<String>>,
    dropoffs: AtomicU64,
    pub(super) answer_counts: AnswerCounts,
}

impl Platform {
    /// Reads the time slot choices; all of them are free.
    pub(super) async fn new(shop: Caller, dispatch_board: Caller) -> Self {
        let choices = shop.get(TIME_SLOT_CHOICES).await.unwrap();
        let choices = choices["choices"].as_array().unwrap().iter();
        let choices = choices.skip(SOONEST_CHOICES);
        let slots: Vec<_> = choices.map(|choice| text(&choice["value"])).collect();
        assert!(!slots.is_empty());
        Self {
            shop,
            dispatch_board,
            slots: Mutex::new(slots),
            dropoffs: AtomicU64::new(0),
            answer_counts: AnswerCounts::default(),
        }
    }

    /// The latest choice that no history has used.
    pub(super) fn next_slot(&self) -> Option<String> {
        self.slots.lock().unwrap().pop()
    }

    /// A `before` that no other delivery has, so that a list can be filtered by it.
    pub(super) fn next_dropoff_time(&self) -> String {
        let number = self.dropoffs.fetch_add(1, Ordering::Relaxed);
        let minutes = i64::try_from(number).unwrap();
        let time = Timestamp::from_second(FIRST_DROPOFF + 60 * minutes);
        time.unwrap().to_string()
    }

    pub(super) async fn create(&self, draft: &Value, key: Option<&str>) -> Result<Value, Failure> {
        self.shop.post(DELIVERIES, draft, key).await
    }

    /// Asks whether a delivery would be created.
    pub(super) async fn assert(&self, draft: &Value) -> Result<Value, Failure> {
        self.shop.post(ASSERT, draft, None).await
    }

    pub(super) async fn calculate_price(&self, draft: &Value) -> Result<Value, Failure> {
        self.shop.post(CALCULATE, draft, None).await
    }

    pub(super) async fn read(&self, iri: &str) -> Result<Value, Failure> {
        self.shop.get(iri).await
    }

    /// Completes a task.
    pub(super) async fn complete(&self, task: &str) -> Result<Value, Failure> {
        self.dispatch_board.complete(task).await
    }

    /// Cancels a delivery.
    pub(super) async fn cancel(&self, delivery: &str) -> Result<Value, Failure> {
        self.shop.cancel(delivery).await
    }

    /// Lists the deliveries with this `before` that match further filters.
    pub(super) async fn list(
        &self,
        dropoff: &str,
        filters: &[(&str, &str)],
    ) -> Result<Value, Failure> {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(filters)
            .append_pair("dropoff.before[after]", dropoff)
            .append_pair("dropoff.before[before]", dropoff)
            .finish();
        self.shop.get(&format!("{DELIVERIES}?{query}")).await
    }
}

/// Repeats a request, which may be executed several times, until it succeeds.
pub(super) async fn until_success<R>(request: impl Fn() -> R) -> Value
where
    R: Future<Output = Result<Value, Failure>>,
{
    let deadline = Instant::now() + RECOVERY_TIMEOUT;
    loop {
        match request().await {
            Ok(value) => return value,
            Err(failure) => assert!(Instant::now() < deadline, "{failure}"),
        }
        tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
    }
}

/// A delivery with a dropoff in a time window: `before` or `timeSlot`.
pub(super) fn draft(window: &str, value: &str, comments: &str) -> Value {
    json!({
        "pickup": {
            "address": { "streetAddress": "44 Rue de Rivoli", "latLng": [48.8566, 2.3530] },
        },
        "dropoff": {
            "address": { "streetAddress": "48 Rue de Rivoli", "latLng": [48.8558, 2.3551] },
            window: value,
            "comments": comments,
        },
    })
}

/// The IRIs of a page's members.
pub(super) fn members(page: &Value) -> Vec<String> {
    let members = page["hydra:member"].as_array().unwrap();
    assert!(page["hydra:view"]["hydra:next"].is_null(), "{page}");
    members
        .iter()
        .map(|member| iri(member).to_owned())
        .collect()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
