//! The log of events, as a shop reads it that was down.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use crate::caller::Caller;

/// A log that was read from its beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventLog {
    numbers: Vec<i64>,
    ids: BTreeSet<String>,
    /// How often each delivery was completed, by its IRI.
    completed: BTreeMap<String, usize>,
}

impl EventLog {
    /// Reads until the completion of each of these is there, or a deadline: what is committed is
    /// numbered a little later, and after a kill when another core has taken over.
    pub(crate) async fn read(shop: &Caller, owed: &BTreeSet<String>, deadline: Duration) -> Self {
        let deadline = tokio::time::Instant::now() + deadline;
        let mut log = Self::default();
        loop {
            log.read_on(shop).await;
            if log.missing(owed) == 0 || deadline <= tokio::time::Instant::now() {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Reads what comes after the last number seen.
    async fn read_on(&mut self, shop: &Caller) {
        let last = self.numbers.last().copied().unwrap_or_default();
        let mut next = Some(format!("/api/events?itemsPerPage=100&after={last}"));
        while let Some(path) = next {
            let page = shop.get(&path).await;
            let page = page.unwrap_or_else(|failure| panic!("no log of events: {failure}"));
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

    /// How many numbers do not follow the one before, of 1, 2, 3, ….
    pub(crate) fn gaps(&self) -> usize {
        let expected = 1..;
        let numbers = self.numbers.iter().zip(expected);
        numbers
            .filter(|(number, expected)| *number != expected)
            .count()
    }

    /// How many of these completions it does not know of.
    pub(crate) fn missing(&self, owed: &BTreeSet<String>) -> usize {
        let known = |delivery: &&String| self.completed.contains_key(*delivery);
        owed.iter().filter(|delivery| !known(delivery)).count()
    }

    /// How many events, or completions of one delivery, are there more than once.
    pub(crate) fn repeats(&self) -> usize {
        let completions: usize = self.completed.values().map(|count| count - 1).sum();
        self.numbers.len() - self.ids.len() + completions
    }
}
