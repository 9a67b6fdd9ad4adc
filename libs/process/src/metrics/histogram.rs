//! A histogram of atomic counters. The library's own locks a mutex for each value.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

/// The unit and the upper bounds of a histogram's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// Of durations, from 1 ms to 30 s.
    Seconds,
    /// Of numbers, from 1 to 256.
    Counts,
}

/// In nanoseconds.
const SECONDS: &[u64] = &[
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
];
const COUNTS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256];

impl Buckets {
    fn bounds(self) -> &'static [u64] {
        match self {
            Self::Seconds => SECONDS,
            Self::Counts => COUNTS,
        }
    }

    /// The number of recorded units in one displayed unit: durations are recorded in nanoseconds.
    fn scale(self) -> f64 {
        match self {
            Self::Seconds => 1e9,
            Self::Counts => 1.0,
        }
    }
}

/// A histogram. Clones share its values.
#[derive(Clone, Debug)]
pub struct Histogram(Arc<State>);

#[derive(Debug)]
struct State {
    buckets: Buckets,
    /// One for each bound, and one for the values above all.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    pub fn new(buckets: Buckets) -> Self {
        let counts = buckets.bounds().iter().map(|_| AtomicU64::default());
        Self(Arc::new(State {
            buckets,
            counts: counts.chain([AtomicU64::default()]).collect(),
            sum: AtomicU64::default(),
        }))
    }

    pub fn observe_duration(&self, duration: Duration) {
        self.observe(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Records a number, or a duration in nanoseconds.
    pub fn observe(&self, value: u64) {
        let bounds = self.0.buckets.bounds();
        let bucket = bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.0.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
            self.0.sum.fetch_add(value, Ordering::Relaxed);
        }
    }
}

impl EncodeMetric for Histogram {
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits are more than a scrape needs"
    )]
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        let State {
            buckets,
            counts,
            sum,
        } = &*self.0;
        let bounds = buckets.bounds().iter();
        let bounds = bounds.map(|bound| *bound as f64 / buckets.scale());
        let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
        let by_bound: Vec<_> = bounds.chain([f64::INFINITY]).zip(counts).collect();
        // Not a counter of its own, so that it always equals the last bucket.
        let count = by_bound.iter().map(|(_, count)| count).sum();
        let sum = sum.load(Ordering::Relaxed) as f64 / buckets.scale();
        encoder.encode_histogram::<NoLabelSet>(sum, count, &by_bound, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}
