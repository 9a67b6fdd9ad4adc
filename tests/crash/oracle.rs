//! Compares the acknowledged resources with the platform's state and the received notifications.

use std::{fmt, time::Duration};

use tokio::task::JoinSet;

use crate::{
    caller::{Caller, Failure},
    event_log::EventLog,
    load::Acknowledged,
    receiver::Receiver,
};

/// The number of tasks read concurrently.
const READERS: usize = 8;

/// The time within which an expired lease is recovered.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// The counts of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Acknowledged creations.
    pub(crate) deliveries: usize,
    /// Acknowledged completions of tasks.
    pub(crate) done: usize,
    /// Tasks whose creation or completion was acknowledged and is missing.
    pub(crate) lost: usize,
    /// Unacknowledged deliveries. Every creation was retried until it was acknowledged, so each of
    /// these was created twice.
    pub(crate) created_twice: usize,
    /// Acknowledged completions without a notification.
    pub(crate) not_notified: usize,
    /// Deliveries with more than one completion event.
    pub(crate) completed_twice: usize,
    /// Notified deliveries that were never acknowledged.
    pub(crate) unknown: usize,
    /// Acknowledged completions missing from the event log.
    pub(crate) not_logged: usize,
    /// Duplicate events in the log.
    pub(crate) logged_twice: usize,
    /// Gaps in the event numbers.
    pub(crate) gaps: usize,
    /// Notifications repeated under the same `webhook-id`.
    pub(crate) repeats: usize,
}

impl Figures {
    /// Asserts that `done` tasks were completed and nothing was lost or duplicated. Notifications
    /// may have been repeated.
    #[track_caller]
    pub(crate) fn assert_nothing_lost(&self, done: usize) {
        let expected = Self {
            deliveries: self.deliveries,
            done,
            repeats: self.repeats,
            ..Self::default()
        };
        assert_eq!(*self, expected);
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "acknowledged: {} creates, {} completed tasks; lost: {}; created twice: {}; \
             completions without notification: {}; completed twice: {}; missing from the event log: \
             {}; in it twice: {}; gaps in it: {}; repeated notifications: {}",
            self.deliveries,
            self.done,
            self.lost,
            self.created_twice,
            self.not_notified,
            self.completed_twice,
            self.not_logged,
            self.logged_twice,
            self.gaps,
            self.repeats
        )
    }
}

/// Waits at most `timeout` for the expected notifications, then reads everything back.
pub(crate) async fn verify(
    acknowledged: &Acknowledged,
    shop: &Caller,
    receiver: &Receiver,
    timeout: Duration,
) -> Figures {
    let expected = &acknowledged.completed;
    receiver
        .wait(timeout, |received| {
            received.deliveries.len() >= expected.len() && received.missing(expected).is_empty()
        })
        .await;
    let log = EventLog::read(shop, expected, RECOVERY_TIMEOUT).await;
    let lost = lost(acknowledged, shop).await;
    let stored = shop.deliveries().await;
    let stored = stored.unwrap_or_else(|failure| panic!("cannot list deliveries: {failure}"));

    let notified = receiver.received();
    let known = &acknowledged.deliveries;
    Figures {
        deliveries: known.len(),
        done: acknowledged.done.len(),
        lost,
        created_twice: stored.difference(known).count(),
        not_notified: notified.missing(expected).len(),
        completed_twice: notified.completed_twice().len(),
        unknown: notified
            .deliveries
            .keys()
            .filter(|delivery| !known.contains(*delivery))
            .count(),
        not_logged: log.missing(expected),
        logged_twice: log.repeats(),
        gaps: log.gaps(),
        repeats: notified.repeats(),
    }
}

/// The number of tasks whose acknowledged state is missing.
async fn lost(acknowledged: &Acknowledged, shop: &Caller) -> usize {
    let mut readers = JoinSet::new();
    let tasks: Vec<_> = acknowledged.tasks.iter().cloned().collect();
    for chunk in tasks.chunks(tasks.len().div_ceil(READERS).max(1)) {
        let chunk: Vec<_> = chunk
            .iter()
            .map(|task| (task.clone(), acknowledged.done.contains(task)))
            .collect();
        let shop = shop.clone();
        readers.spawn(async move {
            let mut lost = 0;
            for (task, done) in chunk {
                match shop.get(&task).await {
                    Ok(found) if !done || found["status"] == "DONE" => {}
                    Ok(_) | Err(Failure::ErrorResponse { status: 404, .. }) => lost += 1,
                    Err(failure) => panic!("{task} cannot be read: {failure}"),
                }
            }
            lost
        });
    }
    readers.join_all().await.into_iter().sum()
}
