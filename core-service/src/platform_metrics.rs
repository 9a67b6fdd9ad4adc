//! The state of the platform as metrics, read from the database when they are scraped, at most every
//! 15 s.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use process::{
    clock::Clock,
    metrics::{Registry, Sample, Sampled},
};
use storage::{
    Storage,
    platform_state::{self, PlatformState},
};
use tokio::time::{Instant, timeout};

/// For how long values are shown before they are read again.
const INTERVAL: Duration = Duration::from_secs(15);

/// Limit of reading them; scrapes have short timeouts.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The last state that was read. Clones share it.
#[derive(Clone)]
pub(crate) struct PlatformMetrics {
    /// Not the storage itself, which a shutdown closes once it is no longer used.
    storage: std::sync::Weak<Storage>,
    clock: Clock,
    /// When it was read last, successfully or not. Locked while it is read.
    read_at: Arc<tokio::sync::Mutex<Option<Instant>>>,
    shown: Arc<Mutex<Option<Shown>>>,
}

#[derive(Clone)]
struct Shown {
    at: Timestamp,
    state: PlatformState,
}

impl PlatformMetrics {
    pub(crate) fn new(storage: &Arc<Storage>, clock: Clock) -> Self {
        Self {
            storage: Arc::downgrade(storage),
            clock,
            read_at: Arc::default(),
            shown: Arc::default(),
        }
    }

    /// Reads the state again if it is old. If that fails, there are no values.
    pub(crate) async fn refresh(self) {
        let mut read_at = self.read_at.lock().await;
        if read_at.is_some_and(|instant| instant.elapsed() < INTERVAL) {
            return;
        }
        let shown = self.read().await;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
        *read_at = Some(Instant::now());
    }

    async fn read(&self) -> Option<Shown> {
        let storage = self.storage.upgrade()?;
        let at = self.clock.now();
        let read = platform_state::read(storage.reader(), at);
        match timeout(TIMEOUT, read).await {
            Ok(Ok(state)) => Some(Shown { at, state }),
            Ok(Err(error)) => {
                let error = anyhow::Error::from(error);
                tracing::warn!(error = %format!("{error:#}"), "cannot read the platform's state for metrics");
                None
            }
            Err(_) => {
                tracing::warn!("the platform's state for metrics was not read within {TIMEOUT:?}");
                None
            }
        }
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        type Read = fn(&Shown) -> Vec<Sample>;
        let gauges: [(_, _, Read); 8] = [
            (
                "delivery_deliveries",
                "Current deliveries by state",
                |shown| {
                    let dropoffs = |task: &&_| is_dropoff(task);
                    let tasks = shown.state.tasks.iter().filter(dropoffs);
                    sums(tasks.map(|task| (vec![("state", &*task.delivery)], task.count)))
                },
            ),
            (
                "delivery_deliveries_late",
                "Current deliveries to do after the end of their dropoff window",
                |shown| vec![number(shown.state.late_deliveries)],
            ),
            (
                "delivery_tasks",
                "Tasks of current deliveries by type and state",
                |shown| {
                    let tasks = shown.state.tasks.iter();
                    sums(tasks.map(|task| {
                        let labels = vec![("type", &*task.kind), ("state", &*task.task)];
                        (labels, task.count)
                    }))
                },
            ),
            (
                "delivery_notifications_due",
                "Notifications that wait for a dispatcher",
                |shown| vec![number(shown.state.due_notifications)],
            ),
            (
                "delivery_notifications_leased",
                "Notifications in flight",
                |shown| vec![number(shown.state.leased_notifications)],
            ),
            (
                "delivery_notifications_oldest_due_age_seconds",
                "How long the oldest due notification has waited",
                |shown| vec![age(shown, shown.state.oldest_due_at)],
            ),
            (
                "delivery_events_unsequenced",
                "Committed events without a number",
                |shown| vec![number(shown.state.unsequenced_events)],
            ),
            (
                "delivery_events_lag_seconds",
                "Age of the oldest event without a number",
                |shown| vec![age(shown, shown.state.oldest_unsequenced_at)],
            ),
        ];
        for (name, help, read) in gauges {
            let shown = Arc::clone(&self.shown);
            let samples = Sampled::new(move || {
                let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
                shown.as_ref().map(read).unwrap_or_default()
            });
            registry.register(name, help, samples);
        }
    }
}

fn is_dropoff(task: &platform_state::TaskCount) -> bool {
    task.kind == "dropoff"
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
fn age(shown: &Shown, since: Option<Timestamp>) -> Sample {
    let age = since.map_or(0.0, |since| shown.at.duration_since(since).as_secs_f64());
    Sample::new(&[], age.max(0.0))
}
