//! The state of the platform as metrics, read from the database when they are scraped, at most
//! every 15 s.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use process::{
    clock::Clock,
    logs::error_chain,
    metrics::{Registry, Sample, Sampled},
};
use storage::{
    Storage,
    platform_state::{self, PlatformState},
};
use tokio::time::{Instant, timeout};

/// How old the values may be before they are read again.
const INTERVAL: Duration = Duration::from_secs(15);

/// Timeout of reading them; scrapes have short timeouts.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The last state that was read. Clones share it.
#[derive(Clone)]
pub(crate) struct PlatformMetrics {
    /// Weak: a shutdown closes the storage once it has no other references.
    storage: std::sync::Weak<Storage>,
    clock: Clock,
    /// When the state was last read, successfully or not. Locked while it is read.
    read_at: Arc<tokio::sync::Mutex<Option<Instant>>>,
    snapshot: Arc<Mutex<Option<Snapshot>>>,
}

#[derive(Clone)]
struct Snapshot {
    at: Timestamp,
    state: PlatformState,
}

impl PlatformMetrics {
    pub(crate) fn new(storage: &Arc<Storage>, clock: Clock) -> Self {
        Self {
            storage: Arc::downgrade(storage),
            clock,
            read_at: Arc::default(),
            snapshot: Arc::default(),
        }
    }

    /// Reads the state again if it is old. If that fails, there are no values.
    pub(crate) async fn refresh(self) {
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|instant| instant.elapsed() < INTERVAL) {
            return;
        }
        let snapshot = self.read().await;
        *self.snapshot.lock() = snapshot;
        *read_at = Some(Instant::now());
    }

    async fn read(&self) -> Option<Snapshot> {
        let storage = self.storage.upgrade()?;
        let at = self.clock.now();
        let read = platform_state::read(storage.reader(), at);
        match timeout(TIMEOUT, read).await {
            Ok(Ok(state)) => Some(Snapshot { at, state }),
            Ok(Err(error)) => {
                tracing::warn!(error = %error_chain(&error), "cannot read the platform's state for metrics");
                None
            }
            Err(_) => {
                tracing::warn!("the platform's state for metrics was not read within {TIMEOUT:?}");
                None
            }
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        type Read = fn(&Snapshot) -> Vec<Sample>;
        let gauges: [(_, _, Read); 8] = [
            (
                "delivery_deliveries",
                "Deliveries whose dropoff window has not ended or ended in the last 24 hours, by state",
                |snapshot| {
                    let tasks = snapshot.state.tasks.iter();
                    let dropoffs = tasks.filter(|task| task.kind == "dropoff");
                    sums(dropoffs.map(|task| (vec![("state", &*task.delivery_state)], task.count)))
                },
            ),
            (
                "delivery_deliveries_late",
                "Current deliveries that are not done although their dropoff window has ended",
                |snapshot| vec![number(snapshot.state.late_deliveries)],
            ),
            (
                "delivery_tasks",
                "Tasks of current deliveries by type and state",
                |snapshot| {
                    let tasks = snapshot.state.tasks.iter();
                    sums(tasks.map(|task| {
                        let labels = vec![("type", &*task.kind), ("state", &*task.task_state)];
                        (labels, task.count)
                    }))
                },
            ),
            (
                "delivery_notifications_due",
                "Notifications that wait for a dispatcher",
                |snapshot| vec![number(snapshot.state.due_notifications)],
            ),
            (
                "delivery_notifications_leased",
                "Notifications in flight",
                |snapshot| vec![number(snapshot.state.leased_notifications)],
            ),
            (
                "delivery_notifications_oldest_due_age_seconds",
                "How long the oldest due notification has waited",
                |snapshot| vec![age(snapshot, snapshot.state.oldest_due_at)],
            ),
            (
                "delivery_events_unsequenced",
                "Committed events without a number",
                |snapshot| vec![number(snapshot.state.unsequenced_events)],
            ),
            (
                "delivery_events_lag_seconds",
                "Age of the oldest event without a number",
                |snapshot| vec![age(snapshot, snapshot.state.oldest_unsequenced_at)],
            ),
        ];
        for (name, help, read) in gauges {
            let snapshot = Arc::clone(&self.snapshot);
            let samples = Sampled::new(move || {
                let snapshot = snapshot.lock();
                snapshot.as_ref().map(read).unwrap_or_default()
            });
            registry.register(name, help, samples);
        }
    }
}

/// The sum of the counts with the same labels.
fn sums<'a>(counts: impl Iterator<Item = (Vec<(&'static str, &'a str)>, i64)>) -> Vec<Sample> {
    let mut sums = BTreeMap::new();
    for (labels, count) in counts {
        *sums.entry(labels).or_insert(0) += count;
    }
    sums.into_iter()
        .map(|(labels, sum)| Sample::count(&labels, usize::try_from(sum).unwrap_or_default()))
        .collect()
}

fn number(count: i64) -> Sample {
    Sample::count(&[], usize::try_from(count).unwrap_or_default())
}

/// In seconds. The clocks of cores may differ: never negative.
fn age(snapshot: &Snapshot, since: Option<Timestamp>) -> Sample {
    let age = since.map_or(0.0, |since| snapshot.at.duration_since(since).as_secs_f64());
    Sample::new(&[], age.max(0.0))
}

#[cfg(test)]
mod tests {
    use process::metrics::Exposition;
    use storage::platform_state::TaskCount;

    use super::*;

    #[tokio::test]
    async fn tasks_with_the_same_labels_are_summed_and_ages_are_not_negative() {
        let tasks = [
            ("pickup", "todo", "todo", 1),
            ("dropoff", "todo", "todo", 2),
            ("pickup", "todo", "done", 4),
            ("dropoff", "completed", "done", 8),
            ("dropoff", "cancelled", "todo", 16),
        ];
        let at = Timestamp::UNIX_EPOCH;
        let state = PlatformState {
            tasks: tasks
                .map(|(kind, delivery, task, count)| TaskCount {
                    kind: kind.to_owned(),
                    delivery_state: delivery.to_owned(),
                    task_state: task.to_owned(),
                    count,
                })
                .into(),
            due_notifications: 3,
            oldest_due_at: Timestamp::from_second(-90).ok(),
            oldest_unsequenced_at: Timestamp::from_second(1).ok(),
            ..PlatformState::default()
        };
        let metrics = PlatformMetrics {
            storage: std::sync::Weak::new(),
            clock: Clock::manual(at),
            read_at: Arc::default(),
            snapshot: Arc::new(Mutex::new(Some(Snapshot { at, state }))),
        };
        let mut exposition = Exposition::new();
        metrics.register(exposition.registry());

        let rendered = exposition.render().await;

        let names = ["deliveries", "tasks", "notifications", "events"];
        let is_of_state = |line: &&str| {
            let name = line.strip_prefix("delivery_");
            name.is_some_and(|name| names.iter().any(|start| name.starts_with(start)))
        };
        let lines: Vec<_> = rendered
            .lines()
            .filter(is_of_state)
            .filter(|line| !line.ends_with(" 0.0"))
            .collect();
        assert_eq!(
            lines,
            [
                "delivery_deliveries{state=\"cancelled\"} 16.0",
                "delivery_deliveries{state=\"completed\"} 8.0",
                "delivery_deliveries{state=\"todo\"} 2.0",
                "delivery_tasks{type=\"dropoff\",state=\"done\"} 8.0",
                "delivery_tasks{type=\"dropoff\",state=\"todo\"} 18.0",
                "delivery_tasks{type=\"pickup\",state=\"done\"} 4.0",
                "delivery_tasks{type=\"pickup\",state=\"todo\"} 1.0",
                "delivery_notifications_due 3.0",
                "delivery_notifications_oldest_due_age_seconds 90.0",
            ]
        );
    }
}
