//! Counters by one label whose values are known beforehand.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

/// A counter for each value of a label, from 0: an alert on an increase needs the initial value.
/// Clones share them.
#[derive(Clone, Debug)]
pub struct Counters {
    label: &'static str,
    values: &'static [&'static str],
    counts: Arc<[AtomicU64]>,
}

impl Counters {
    pub fn new(label: &'static str, values: &'static [&'static str]) -> Self {
        Self {
            label,
            values,
            counts: values.iter().map(|_| AtomicU64::default()).collect(),
        }
    }

    pub fn inc(&self, value: &str) {
        self.add(value, 1);
    }

    /// Ignores a value that the label does not have.
    pub fn add(&self, value: &str, count: u64) {
        let known = self.values.iter().position(|known| *known == value);
        if let Some(counter) = known.and_then(|known| self.counts.get(known)) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }
}

impl EncodeMetric for Counters {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        for (value, count) in self.values.iter().zip(&*self.counts) {
            let labels = [(self.label, *value)];
            let count = count.load(Ordering::Relaxed);
            encoder
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Counter
    }
}
