//! Compares what was acknowledged with what the platform knows and what its receiver was told.

use std::{fmt, time::Duration};

use tokio::task::JoinSet;

use crate::{
    caller::{Caller, Failure},
    event_log::EventLog,
    load::Acknowledged,
    receiver::Receiver,
};

/// How many tasks are read at once.
const READERS: usize = 8;

/// A moment's silence is no proof; a lease that was ended is taken over within this time.
pub(crate) const TAKEN_OVER: Duration = Duration::from_secs(30);

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) deliveries: usize,
    pub(crate) done: usize,
    /// Acknowledged and not there: tasks that are unknown, or to be done again.
    pub(crate) lost: usize,
    /// There, and acknowledged to nobody: every create was tried until it was acknowledged, so
    /// each of these is one that was created twice.
    pub(crate) created_twice: usize,
    /// Completions acknowledged and never told.
    pub(crate) untold: usize,
    /// Deliveries that were completed more than once.
    pub(crate) completed_twice: usize,
    /// Deliveries whose completion was told and that nobody knows of.
    pub(crate) invented: usize,
    /// Completions acknowledged that are not in the log of events.
    pub(crate) unlogged: usize,
    /// Events that are in it twice.
    pub(crate) logged_twice: usize,
    /// Numbers in it that do not follow the one before.
    pub(crate) gaps: usize,
    /// Notifications that came again, under the same `webhook-id`.
    pub(crate) repeats: usize,
}

impl Figures {
    /// So many tasks were completed, and nothing is amiss. Notifications may have come again.
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
             completions without notification: {}; completed twice: {}; not in the log of events: \
             {}; in it twice: {}; gaps in it: {}; repeated notifications: {}",
            self.deliveries,
            self.done,
            self.lost,
            self.created_twice,
            self.untold,
            self.completed_twice,
            self.unlogged,
            self.logged_twice,
            self.gaps,
            self.repeats
        )
    }
}

/// Waits for the notifications owed, until a deadline, and reads everything back.
pub(crate) async fn judge(
    acknowledged: &Acknowledged,
    shop: &Caller,
    receiver: &Receiver,
    deadline: Duration,
) -> Figures {
    let owed = &acknowledged.completed;
    receiver
        .wait(deadline, |told| {
            told.deliveries.len() >= owed.len() && told.missing(owed).is_empty()
        })
        .await;
    let log = EventLog::read(shop, owed, TAKEN_OVER).await;
    let lost = lost(acknowledged, shop).await;
    let there = shop.deliveries().await;
    let there = there.unwrap_or_else(|failure| panic!("no list of deliveries: {failure}"));

    let told = receiver.so_far();
    let known = &acknowledged.deliveries;
    Figures {
        deliveries: known.len(),
        done: acknowledged.done.len(),
        lost,
        created_twice: there.difference(known).count(),
        untold: told.missing(owed).len(),
        completed_twice: told.completed_twice().len(),
        invented: told
            .deliveries
            .keys()
            .filter(|told| !known.contains(*told))
            .count(),
        unlogged: log.missing(owed),
        logged_twice: log.repeats(),
        gaps: log.gaps(),
        repeats: told.repeats(),
    }
}

/// How many tasks are not as they were acknowledged.
async fn lost(acknowledged: &Acknowledged, shop: &Caller) -> usize {
    let mut readers = JoinSet::new();
    let tasks: Vec<_> = acknowledged.tasks.iter().cloned().collect();
    for some in tasks.chunks(tasks.len().div_ceil(READERS).max(1)) {
        let some: Vec<_> = some
            .iter()
            .map(|task| (task.clone(), acknowledged.done.contains(task)))
            .collect();
        let shop = shop.clone();
        readers.spawn(async move {
            let mut lost = 0;
            for (task, done) in some {
                match shop.get(&task).await {
                    Ok(found) if !done || found["status"] == "DONE" => {}
                    Ok(_) | Err(Failure::Answer { status: 404, .. }) => lost += 1,
                    Err(failure) => panic!("{task} cannot be read: {failure}"),
                }
            }
            lost
        });
    }
    readers.join_all().await.into_iter().sum()
}
