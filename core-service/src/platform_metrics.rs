//! The state of the platform as metrics, read from the database when they are scraped.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

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

/// How old the values may be before they are read again, which another core may have done shortly before.
const INTERVAL: Duration = Duration::from_secs(5);

/// Timeout of reading them; scrapes have short timeouts.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The last state that was read. Clones share it.
#[derive(Clone)]
pub(crate) struct PlatformMetrics {
    /// Weak: a shutdown closes the storage once it has no other references.
    storage: std::sync::Weak<Storage>,
    clock: Clock,
    /// When the state was last read, successfully or not. Locked while it is read.
    read_at: Arc<tokio::sync::Mutex<Option<Instant>>>,
    state: Arc<Mutex<Option<PlatformState>>>,
}

impl PlatformMetrics {
    pub(crate) fn new(storage: &Arc<Storage>, clock: Clock) -> Self {
        Self {
            storage: Arc::downgrade(storage),
            clock,
            read_at: Arc::default(),
            state: Arc::default(),
        }
    }

    /// Reads the state again if it is old. If that fails, there are no values.
    pub(crate) async fn refresh(self) {
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|instant| instant.elapsed() < INTERVAL) {
            return;
        }
        let state = self.read().await;
        *self.state.lock() = state;
        *read_at = Some(Instant::now());
    }

    async fn read(&self) -> Option<PlatformState> {
        let storage = self.storage.upgrade()?;
        let read = platform_state::current(&storage, self.clock.now());
        match timeout(TIMEOUT, read).await {
            Ok(Ok(state)) => state,
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
        type Read = fn(&PlatformState) -> Vec<Sample>;
        let gauges: [(_, _, Read); 8] = [
            (
                "delivery_deliveries",
                "Deliveries whose dropoff window has not ended or ended in the last 24 hours, by state",
                |state| {
                    let deliveries = state.deliveries.iter();
                    sums(deliveries.map(|of| (vec![("state", &*of.state)], of.count)))
                },
            ),
            (
                "delivery_deliveries_late",
                "Current deliveries that are not done although their dropoff window has ended",
                |state| vec![number(state.late_deliveries)],
            ),
            (
                "delivery_tasks",
                "Tasks whose window has not ended or ended in the last 24 hours, by type and state",
                |state| {
                    sums(state.tasks.iter().map(|of| {
                        let labels = vec![("type", &*of.kind), ("state", &*of.state)];
                        (labels, of.count)
                    }))
                },
            ),
            (
                "delivery_notifications_due",
                "Notifications that wait for a dispatcher",
                |state| vec![number(state.due_notifications)],
            ),
            (
                "delivery_notifications_leased",
                "Notifications in flight",
                |state| vec![number(state.leased_notifications)],
            ),
            (
                "delivery_notifications_oldest_due_age_seconds",
                "How long the oldest due notification has waited",
                |state| vec![age(state.oldest_due_age)],
            ),
            (
                "delivery_events_unsequenced",
                "Committed events without a number",
                |state| vec![number(state.unsequenced_events)],
            ),
            (
                "delivery_events_lag_seconds",
                "Age of the oldest event without a number",
                |state| vec![age(state.oldest_unsequenced_age)],
            ),
        ];
        for (name, help, read) in gauges {
            let state = Arc::clone(&self.state);
            let samples = Sampled::new(move || {
                let state = state.lock();
                state.as_ref().map(read).unwrap_or_default()
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

fn age(age: Duration) -> Sample {
    Sample::new(&[], age.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use process::metrics::Exposition;
    use storage::platform_state::{DeliveryCount, TaskCount};

    use super::*;

    #[tokio::test]
    async fn states_are_labels_and_ages_are_in_seconds() {
        let deliveries = [("todo", 2), ("completed", 8), ("cancelled", 16)];
        let tasks = [
            ("pickup", "todo", 1),
            ("dropoff", "todo", 18),
            ("pickup", "done", 4),
            ("dropoff", "done", 8),
        ];
        let state = PlatformState {
            deliveries: deliveries
                .map(|(state, count)| DeliveryCount {
                    state: state.to_owned(),
                    count,
                })
                .into(),
            tasks: tasks
                .map(|(kind, state, count)| TaskCount {
                    kind: kind.to_owned(),
                    state: state.to_owned(),
                    count,
                })
                .into(),
            due_notifications: 3,
            oldest_due_age: Duration::from_secs(90),
            ..PlatformState::default()
        };
        let metrics = PlatformMetrics {
            storage: std::sync::Weak::new(),
            clock: Clock::manual(Timestamp::UNIX_EPOCH),
            read_at: Arc::default(),
            state: Arc::new(Mutex::new(Some(state))),
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
