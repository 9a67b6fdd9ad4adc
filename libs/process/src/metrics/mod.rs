//! The metrics of all programs.

mod sampled;

use std::{hash::Hash, pin::Pin, sync::Arc};

use prometheus_client::encoding::text::encode;

pub use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

use crate::{traces, version};

pub use self::sampled::{Sample, Sampled};

/// The labels of a series with their values.
pub type Labels<const N: usize, V = &'static str> = [(&'static str, V); N];

/// Histograms of durations in seconds by labels.
pub type Durations<L> = Family<L, Histogram>;

pub fn durations<L: Clone + Eq + Hash>() -> Durations<L> {
    Durations::new_with_constructor(|| {
        Histogram::new([
            0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
        ])
    })
}

/// A counter for each value of a label. Clones share them.
#[derive(Clone, Debug)]
pub struct Counters {
    label: &'static str,
    pub family: Family<Labels<1>, Counter>,
}

impl Counters {
    /// Values that are counted from 0: an alert on an increase needs the initial value.
    pub fn new(label: &'static str, values: &[&'static str]) -> Self {
        let family = Family::default();
        let counters = Self { label, family };
        for value in values {
            counters.add(value, 0);
        }
        counters
    }

    pub fn inc(&self, value: &'static str) {
        self.add(value, 1);
    }

    pub fn add(&self, value: &'static str, count: u64) {
        let labels = [(self.label, value)];
        self.family.get_or_create(&labels).inc_by(count);
    }
}

type Refresh = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What `/metrics` serves. Each program has its own; there is no global registry.
#[derive(Default)]
pub struct Exposition {
    registry: Registry,
    refresh: Option<Refresh>,
}

impl Exposition {
    /// With `delivery_build_info`, the version of the program and its commit, and the metrics of
    /// traces.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let build = || vec![Sample::new(&version::labels(), 1.0)];
        registry.register(
            "delivery_build_info",
            "The version of the program",
            Sampled::new(build),
        );
        traces::register_metrics(&mut registry);
        Self {
            registry,
            refresh: None,
        }
    }

    pub fn registry(&mut self) -> &mut Registry {
        &mut self.registry
    }

    /// Sets a function that is called before each rendering, to update metrics whose values come
    /// from elsewhere, such as a database. Replaces an earlier one.
    pub fn refresh_with<F>(&mut self, refresh: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.refresh = Some(Arc::new(move || Box::pin(refresh())));
    }

    /// The metrics as `OpenMetrics` text.
    pub async fn render(&self) -> String {
        if let Some(refresh) = &self.refresh {
            refresh().await;
        }
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry) {
            tracing::error!(%error, "cannot encode metrics");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_exposition_renders_its_metrics_after_a_refresh() {
        let mut exposition = Exposition::new();
        let refreshed = Counter::<u64>::default();
        let counters = Counters::new("reason", &["gone", "failing"]);
        let durations = durations::<Labels<2>>();
        let registry = exposition.registry();
        registry.register("refreshes", "Refreshes", refreshed.clone());
        registry.register("webhooks_disabled", "Disabled", counters.family.clone());
        registry.register_with_unit("request", "Durations", Unit::Seconds, durations.clone());
        exposition.refresh_with(move || {
            refreshed.inc();
            std::future::ready(())
        });

        counters.add("failing", 2);
        let found = [("route", "/a"), ("status", "200")];
        let not_found = [("route", "/a"), ("status", "404")];
        durations.get_or_create(&not_found).observe(0.001);
        durations.get_or_create(&not_found).observe(0.0015);
        durations.get_or_create(&found).observe(31.0);
        let text = exposition.render().await;

        for line in [
            concat!(
                "delivery_build_info{version=\"",
                env!("CARGO_PKG_VERSION"),
                "\"} 1.0"
            ),
            "refreshes_total 1",
            "webhooks_disabled_total{reason=\"failing\"} 2",
            "webhooks_disabled_total{reason=\"gone\"} 0",
            "# UNIT request_seconds seconds",
            "request_seconds_count{route=\"/a\",status=\"404\"} 2",
            "request_seconds_sum{route=\"/a\",status=\"404\"} 0.0025",
            "request_seconds_bucket{le=\"0.001\",route=\"/a\",status=\"404\"} 1",
            "request_seconds_bucket{le=\"0.0025\",route=\"/a\",status=\"404\"} 2",
            "request_seconds_bucket{le=\"30.0\",route=\"/a\",status=\"200\"} 0",
            "request_seconds_bucket{le=\"+Inf\",route=\"/a\",status=\"200\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("request_seconds_count").count(), 2, "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
