//! The event log, read by a shop.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use crate::caller::Caller;

/// An event log, read from its beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    numbers: Vec<i64>,
    ids: BTreeSet<String>,
    /// The number of completions of each delivery, by IRI.
    completed: BTreeMap<String, usize>,
}

impl EventLog {
    /// Reads until the log has a completion of each expected delivery, or a timeout. A committed
    /// event is numbered a moment later; after a kill, once another core has taken over.
    pub(crate) async fn read(
        shop: &Caller,
        expected: &BTreeSet<String>,
        timeout: Duration,
    ) -> Self {
        let deadline = tokio::time::Instant::now() + timeout;
        let mut log = Self::default();
        loop {
            log.read_new(shop).await;
            if log.missing(expected) == 0 || deadline <= tokio::time::Instant::now() {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Reads the events after the last number read.
    async fn read_new(&mut self, shop: &Caller) {
        let last = self.numbers.last().copied().unwrap_or_default();
        let mut next = Some(format!("/api/events?itemsPerPage=100&after={last}"));
        while let Some(path) = next {
            let page = shop.get(&path).await;
            let page =
                page.unwrap_or_else(|failure| panic!("cannot read the event log: {failure}"));
            for event in page["hydra:member"].as_array().unwrap() {
                self.add(event);
            }
            next = page["hydra:view"]["hydra:next"].as_str().map(str::to_owned);
        }
    }

    fn add(&mut self, event: &Value) {
        self.numbers.push(event["number"].as_i64().unwrap());
        self.ids.insert(event["id"].as_str().unwrap().to_owned());
        if event["event"] == "delivery.completed" {
            let delivery = event["object"].as_str().unwrap().to_owned();
            *self.completed.entry(delivery).or_default() += 1;
        }
    }

    /// The number of events whose number is not their position, from 1.
    pub(crate) fn gaps(&self) -> usize {
        let expected = 1..;
        let numbers = self.numbers.iter().zip(expected);
        numbers
            .filter(|(number, expected)| *number != expected)
            .count()
    }

    /// The number of expected completions missing from the log.
    pub(crate) fn missing(&self, expected: &BTreeSet<String>) -> usize {
        let known = |delivery: &&String| self.completed.contains_key(*delivery);
        expected.iter().filter(|delivery| !known(delivery)).count()
    }

    /// The number of duplicate events and of repeated completions of a delivery.
    pub(crate) fn repeats(&self) -> usize {
        let completions: usize = self.completed.values().map(|count| count - 1).sum();
        self.numbers.len() - self.ids.len() + completions
    }
}
