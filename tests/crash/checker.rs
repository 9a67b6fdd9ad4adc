//! Compares the acknowledged writes with the platform's state, its event log and the received
//! notifications.

use std::{
    collections::BTreeSet,
    fmt,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    caller::{Caller, iri},
    counting_receiver::CountingReceiver,
    event_log::EventLog,
    failure::Failure,
    load::Acknowledged,
};

/// The number of deliveries read concurrently.
const READERS: usize = 8;

/// The time within which an expired lease is recovered.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Counts what is still to be done: notifications without a final outcome, events without a number, changes of tasks
/// outside their log.
const UNSETTLED: &str =
    "SELECT (SELECT count(*) FROM notifications WHERE state IN ('pending', 'leased'))
    + (SELECT count(*) FROM events WHERE number IS NULL) + (SELECT count(*) FROM task_change_queue)";

const UNSETTLED_NOTIFICATIONS: &str =
    "SELECT state || ', attempts ' || attempts || ', created ' || created_at || ', due ' || due_at
        || ', lease until ' || coalesce(lease_expires_at, 0)
    FROM notifications WHERE state IN ('pending', 'leased')";

/// What a verification counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Creations answered with 201.
    pub(crate) created: usize,
    /// Completions of tasks answered with 200.
    pub(crate) done: usize,
    /// Deliveries whose two tasks were acknowledged as done.
    pub(crate) completed: usize,
    /// Notifications received again under the same `webhook-id`.
    pub(crate) repeats: usize,
    pub(crate) defects: Defects,
}

/// What no fault may cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Defects {
    /// Acknowledged deliveries that are not found by their id, or whose tasks are not in their
    /// acknowledged state.
    pub(crate) lost: usize,
    /// Acknowledged deliveries whose content is not what was sent and answered.
    pub(crate) altered: usize,
    /// Creations answered with the delivery of another creation.
    pub(crate) shared: usize,
    /// Acknowledged deliveries missing from the list.
    pub(crate) not_listed: usize,
    /// Deliveries listed more than once.
    pub(crate) listed_twice: usize,
    /// Listed deliveries that were never acknowledged. Every creation was retried until it was
    /// acknowledged, so each of these was created twice.
    pub(crate) created_twice: usize,
    /// Completed deliveries without a notification.
    pub(crate) not_notified: usize,
    /// Deliveries notified under more than one `webhook-id`.
    pub(crate) notified_twice: usize,
    /// Notified deliveries that cannot be completed: the completion of one of their tasks was never
    /// requested, or they are unknown.
    pub(crate) notified_unfinished: usize,
    /// Acknowledged deliveries whose creation is missing from the event log.
    pub(crate) creation_not_logged: usize,
    /// Logged events of deliveries before that of their creation.
    pub(crate) logged_early: usize,
    /// Completed deliveries missing from the event log.
    pub(crate) not_logged: usize,
    /// Events logged twice, and further completions of a delivery.
    pub(crate) logged_twice: usize,
    /// Logged completions of deliveries that cannot be completed.
    pub(crate) logged_unfinished: usize,
    /// Gaps in the event numbers.
    pub(crate) gaps: usize,
}

impl Figures {
    /// Asserts that there was something to lose, and that nothing was lost or duplicated.
    /// Notifications may have been repeated.
    #[track_caller]
    pub(crate) fn assert_nothing_lost(&self) {
        assert_eq!(self.defects, Defects::default());
        // Some deliveries are left unfinished, so that a completion of any of them is noticed.
        assert!(
            0 < self.completed && self.completed < self.created,
            "{self}"
        );
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "acknowledged: {} creates, {} completed tasks ({} deliveries completed); repeated \
             notifications: {}; {}",
            self.created,
            self.done,
            self.completed,
            self.repeats,
            if self.defects == Defects::default() {
                "nothing lost, altered or duplicated".to_owned()
            } else {
                format!("{:?}", self.defects)
            }
        )
    }
}

/// Waits at most `timeout` until the platform has nothing left to do, then reads everything back.
/// `query` runs a statement on the platform's database.
pub(crate) async fn verify(
    acknowledged: &Acknowledged,
    shop: &Caller,
    receiver: &CountingReceiver,
    query: impl Fn(&str) -> String,
    timeout: Duration,
) -> Figures {
    wait_until_settled(query, timeout).await;
    let log = EventLog::read(shop).await;
    read_back(acknowledged, shop, receiver, &log).await
}

/// Compares the acknowledged writes with what is read back now, with the received notifications and
/// with a copy of the event log.
pub(crate) async fn read_back(
    acknowledged: &Acknowledged,
    shop: &Caller,
    receiver: &CountingReceiver,
    log: &EventLog,
) -> Figures {
    let completed = acknowledged.completed();
    let completable = acknowledged.completable();
    let known = acknowledged.deliveries();
    let (lost, altered) = compare(acknowledged, shop).await;
    let listed = shop.deliveries().await;
    let listed = listed.unwrap_or_else(|failure| panic!("cannot list deliveries: {failure}"));
    let distinct: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    let notified = receiver.received();

    Figures {
        created: acknowledged.created.len(),
        done: acknowledged.done.len(),
        completed: completed.len(),
        repeats: notified.repeats(),
        defects: Defects {
            lost,
            altered,
            shared: acknowledged.created.len() - known.len(),
            not_listed: known.difference(&distinct).count(),
            listed_twice: listed.len() - distinct.len(),
            created_twice: distinct.difference(&known).count(),
            not_notified: notified.missing(&completed).len(),
            notified_twice: notified.notified_twice().len(),
            notified_unfinished: notified
                .deliveries
                .keys()
                .filter(|delivery| !completable.contains(*delivery))
                .count(),
            creation_not_logged: log.missing_creations(&known),
            logged_early: log.early(),
            not_logged: log.missing(&completed),
            logged_twice: log.repeats(),
            logged_unfinished: log.unexpected(&completable),
            gaps: log.gaps(),
        },
    }
}

/// Waits until every notification has its final outcome and every event its number.
pub(crate) async fn wait_until_settled(query: impl Fn(&str) -> String, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    loop {
        let unsettled = query(UNSETTLED);
        if unsettled == "0" {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{unsettled} notifications and events are not settled after {timeout:?}; notifications:\n{}",
            query(UNSETTLED_NOTIFICATIONS)
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Reads every acknowledged delivery; the numbers of lost and of altered ones.
async fn compare(acknowledged: &Acknowledged, shop: &Caller) -> (usize, usize) {
    let mut readers = JoinSet::new();
    let created = &acknowledged.created;
    for chunk in created.chunks(created.len().div_ceil(READERS).max(1)) {
        let chunk: Vec<_> = chunk
            .iter()
            .map(|(comment, delivery)| {
                let states = states(delivery, acknowledged);
                (comment.clone(), delivery.clone(), states)
            })
            .collect();
        let shop = shop.clone();
        readers.spawn(async move {
            let (mut lost, mut altered) = (0, 0);
            for (comment, created, states) in chunk {
                let mut read = match shop.get(iri(&created)).await {
                    Ok(read) => read,
                    Err(Failure::ErrorResponse { status: 404, .. }) => {
                        lost += 1;
                        continue;
                    }
                    Err(failure) => panic!("{} cannot be read: {failure}", iri(&created)),
                };
                lost += usize::from(!has_states(&read, &states));
                if created["trackingUrl"].is_null() {
                    // A gateway of an earlier version does not show it.
                    read["trackingUrl"] = Value::Null;
                }
                let is_as_sent = read["dropoff"]["comments"] == *comment;
                altered += usize::from(!is_as_sent || content(read) != content(created));
            }
            (lost, altered)
        });
    }
    let counts = readers.join_all().await;
    counts
        .into_iter()
        .fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1))
}

/// The state that each task must have: `None` if the completion was requested and not acknowledged.
fn states(delivery: &Value, acknowledged: &Acknowledged) -> [Option<&'static str>; 2] {
    ["pickup", "dropoff"].map(|task| {
        let task = iri(&delivery[task]);
        if acknowledged.done.contains(task) {
            Some("DONE")
        } else if acknowledged.requested.contains(task) {
            None
        } else {
            Some("TODO")
        }
    })
}

fn has_states(delivery: &Value, states: &[Option<&str>; 2]) -> bool {
    let tasks = ["pickup", "dropoff"].map(|task| &delivery[task]["status"]);
    std::iter::zip(tasks, states).all(|(status, state)| state.is_none_or(|state| *status == state))
}

/// A delivery without what completing a task changes.
fn content(mut delivery: Value) -> Value {
    delivery["state"] = Value::Null;
    for task in ["pickup", "dropoff"] {
        for changed in ["status", "state", "updatedAt"] {
            delivery[task][changed] = Value::Null;
        }
    }
    delivery
}
