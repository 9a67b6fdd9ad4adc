//! The metrics of all programs. Recording a value takes atomic additions: no lock
//! and, except for the first value of a series, no allocation. Label values are known beforehand.

mod counters;
mod histogram;
mod histogram_table;
mod sampled;

use std::{pin::Pin, sync::Arc};

use prometheus_client::encoding::text::encode;

pub use prometheus_client::{
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};

use crate::{traces, version};

pub use self::{
    counters::Counters,
    histogram::{Buckets, Histogram},
    histogram_table::{HistogramTable, HistogramTables, Labels},
    sampled::{Sample, Sampled},
};

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
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_exposition_renders_its_metrics_after_a_refresh() {
        let mut exposition = Exposition::new();
        let refreshed = Counter::<u64>::default();
        let counters = Counters::new("reason", &["gone", "failing"]);
        let table = HistogramTable::new(
            vec![vec![("route", "/a".to_owned())], Vec::new()],
            ("status", &["200", "404"]),
            Buckets::Seconds,
        );
        let sizes = Histogram::new(Buckets::Counts);
        let registry = exposition.registry();
        registry.register("refreshes", "Refreshes", refreshed.clone());
        registry.register("webhooks_disabled", "Disabled", counters.clone());
        registry.register_with_unit("request", "Durations", Unit::Seconds, table.clone());
        registry.register("writes", "Writes per commit", sizes.clone());
        exposition.refresh_with(move || {
            refreshed.inc();
            std::future::ready(())
        });

        counters.add("failing", 2);
        counters.add("another", 1);
        table.observe(0, 1, Duration::from_millis(1));
        table.observe(0, 1, Duration::from_micros(1001));
        table.observe(1, 0, Duration::from_secs(31));
        table.observe(2, 0, Duration::ZERO);
        table.observe(0, 2, Duration::ZERO);
        sizes.observe(3);
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
            "request_seconds_sum{route=\"/a\",status=\"404\"} 0.002001",
            "request_seconds_bucket{le=\"0.001\",route=\"/a\",status=\"404\"} 1",
            "request_seconds_bucket{le=\"0.0025\",route=\"/a\",status=\"404\"} 2",
            "request_seconds_bucket{le=\"30.0\",status=\"200\"} 0",
            "request_seconds_bucket{le=\"+Inf\",status=\"200\"} 1",
            "writes_bucket{le=\"2.0\"} 0",
            "writes_bucket{le=\"4.0\"} 1",
            "writes_sum 3.0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("request_seconds_count").count(), 2, "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
