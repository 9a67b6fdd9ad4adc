//! Gauges whose values are known elsewhere and read when the metrics are rendered.

use std::fmt;

use prometheus_client::{
    encoding::{EncodeMetric, MetricEncoder},
    metrics::MetricType,
};

/// A gauge that calls a function for its current values.
pub struct Sampled(Box<dyn Fn() -> Vec<Sample> + Send + Sync>);

/// A value of a gauge, with the labels of its series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    labels: Vec<(&'static str, String)>,
    value: f64,
}

impl Sample {
    pub fn new(labels: &[(&'static str, &str)], value: f64) -> Self {
        let labels = labels.iter();
        Self {
            labels: labels
                .map(|(label, value)| (*label, (*value).to_owned()))
                .collect(),
            value,
        }
    }

    /// A value that is a number of things.
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits are more than a scrape needs"
    )]
    pub fn count(labels: &[(&'static str, &str)], value: usize) -> Self {
        Self::new(labels, value as f64)
    }
}

impl Sampled {
    pub fn new(read: impl Fn() -> Vec<Sample> + Send + Sync + 'static) -> Self {
        Self(Box::new(read))
    }
}

impl fmt::Debug for Sampled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sampled(…)")
    }
}

impl EncodeMetric for Sampled {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        for Sample { labels, value } in (self.0)() {
            if labels.is_empty() {
                encoder.encode_gauge(&value)?;
            } else {
                encoder.encode_family(&labels)?.encode_gauge(&value)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}
