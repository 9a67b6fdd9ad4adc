//! The event log, read by a shop.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{sync::watch, task::JoinHandle};

use crate::{caller::Caller, failure::Failure};

/// The time between two readings of a follower.
const INTERVAL: Duration = Duration::from_millis(50);

/// The time in which the log can be read again after a fault.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(40);

/// An event log, read from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventLog {
    numbers: Vec<i64>,
    /// The ids in the order of the log.
    ids: Vec<String>,
    /// The number of creations and of completions of each delivery, by IRI.
    created: BTreeMap<String, usize>,
    completed: BTreeMap<String, usize>,
    /// The number of events of deliveries whose creation comes later.
    early: usize,
    events_of: BTreeMap<String, usize>,
}

impl EventLog {
    /// Reads the whole log.
    pub(crate) async fn read(shop: &Caller) -> Self {
        let mut log = Self::default();
        let read = log.read_new(shop).await;
        read.unwrap_or_else(|failure| panic!("cannot read the event log: {failure}"));
        log
    }

    /// Reads the events after the last number read. If it fails, those read so far are kept.
    pub(crate) async fn read_new(&mut self, shop: &Caller) -> Result<(), Failure> {
        let last = self.numbers.last().copied().unwrap_or_default();
        let mut next = Some(format!("/api/events?itemsPerPage=100&after={last}"));
        while let Some(path) = next {
            let page = shop.get(&path).await?;
            for event in page["hydra:member"].as_array().unwrap() {
                self.add(event);
            }
            next = page["hydra:view"]["hydra:next"].as_str().map(str::to_owned);
        }
        Ok(())
    }

    fn add(&mut self, event: &Value) {
        self.numbers.push(event["number"].as_i64().unwrap());
        self.ids.push(event["id"].as_str().unwrap().to_owned());
        let delivery = event["object"].as_str().unwrap();
        if event["event"] == "delivery.created" {
            self.early += self.events_of.get(delivery).copied().unwrap_or_default();
            *self.created.entry(delivery.to_owned()).or_default() += 1;
        }
        if event["event"] == "delivery.completed" {
            *self.completed.entry(delivery.to_owned()).or_default() += 1;
        }
        *self.events_of.entry(delivery.to_owned()).or_default() += 1;
    }

    /// The number of events whose number is not their index in the log, counted from 1.
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

    /// The number of expected creations missing from the log.
    pub(crate) fn missing_creations(&self, expected: &BTreeSet<&str>) -> usize {
        let is_missing = |delivery: &&&str| !self.created.contains_key(**delivery);
        expected.iter().filter(is_missing).count()
    }

    /// The number of events before that of their delivery's creation.
    pub(crate) fn early(&self) -> usize {
        self.early
    }

    /// The number of completed deliveries that are not among the possible ones.
    pub(crate) fn unexpected(&self, possible: &BTreeSet<String>) -> usize {
        let completed = self.completed.keys();
        completed
            .filter(|delivery| !possible.contains(*delivery))
            .count()
    }

    /// The number of duplicate events, and of repeated creations and completions of a delivery.
    pub(crate) fn repeats(&self) -> usize {
        let counts = self.created.values().chain(self.completed.values());
        let repeats: usize = counts.map(|count| count - 1).sum();
        let distinct: BTreeSet<_> = self.ids.iter().collect();
        self.ids.len() - distinct.len() + repeats
    }
}

/// Reads the log repeatedly, as a shop does that keeps a copy of it: it never reads an event
/// again, so a number that appears after a higher one is lost to it.
pub(crate) struct Follower {
    /// The log so far, and when its last complete reading began.
    log: watch::Receiver<(EventLog, Option<Instant>)>,
    running: JoinHandle<()>,
}

impl Follower {
    pub(crate) fn start(shop: Caller) -> Self {
        let (sender, log) = watch::channel((EventLog::default(), None));
        let running = tokio::spawn(async move {
            let mut log = EventLog::default();
            let mut last_read = None;
            loop {
                let began = Instant::now();
                match log.read_new(&shop).await {
                    Ok(()) => last_read = Some(began),
                    Err(failure) => assert!(failure.is_expected_after_a_kill(), "{failure}"),
                }
                sender.send_replace((log.clone(), last_read));
                tokio::time::sleep(INTERVAL).await;
            }
        });
        Self { log, running }
    }

    /// Waits until the log was read to its end after an instant; asserts that it has no gap.
    pub(crate) async fn assert_no_gap_after(&mut self, instant: Instant) -> EventLog {
        let read = self
            .log
            .wait_for(|(_, last_read)| *last_read > Some(instant));
        let read = tokio::time::timeout(RECOVERY_TIMEOUT, read).await;
        let read = read.expect("the event log should be readable").unwrap();
        let (log, _) = &*read;
        assert_eq!(log.gaps(), 0, "{:?}", log.numbers);
        log.clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.running.abort();
    }
}
