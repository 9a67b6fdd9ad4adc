//! The metrics of a gateway.

use std::time::Duration;

use http::{Method, StatusCode};
use process::metrics::{Counters, Durations, Gauge, Histogram, Labels, Registry, Unit, durations};

/// Stands for paths without a route and for unusual methods.
const OTHER: &str = "_OTHER";

/// Methods of requests that are counted apart.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Metrics since the process started. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: Durations<(Labels<2>, Labels<1, u16>)>,
    pub(crate) active: Gauge,
    /// Requests rejected with 503 for lack of a resource.
    pub(crate) shed: Counters,
}

/// The series of a request, without its status.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series {
    pub(crate) method: &'static str,
    /// The template of the route's path.
    pub(crate) route: &'static str,
}

impl Series {
    pub(crate) fn new(method: &Method, route: Option<&'static str>) -> Self {
        let mut known = METHODS.into_iter();
        Self {
            method: known.find(|known| *known == method).unwrap_or(OTHER),
            route: route.unwrap_or(OTHER),
        }
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let metrics = Self {
            requests: durations(),
            active: Gauge::default(),
            shed: Counters::new("reason", &["concurrency", "connections", "memory"]),
        };
        // A family without series is not in the exposition.
        metrics.durations(Series::new(&Method::GET, Some("/healthz")), StatusCode::OK);
        metrics
    }

    /// Records a response.
    pub(crate) fn record(&self, series: Series, status: StatusCode, duration: Duration) {
        self.durations(series, status)
            .observe(duration.as_secs_f64());
    }

    fn durations(&self, series: Series, status: StatusCode) -> Histogram {
        let route = [
            ("http_request_method", series.method),
            ("http_route", series.route),
        ];
        let status = [("http_response_status_code", status.as_u16())];
        self.requests.get_or_create_owned(&(route, status))
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "http_server_request_duration",
            "Duration of HTTP requests by method, route and status",
            Unit::Seconds,
            self.requests.clone(),
        );
        registry.register(
            "http_server_active_requests",
            "Requests without a response yet",
            self.active.clone(),
        );
        registry.register(
            "delivery_rest_requests_shed",
            "Requests rejected for lack of a resource",
            self.shed.family.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use process::metrics::Exposition;

    use super::*;

    #[tokio::test]
    async fn a_request_is_counted_by_its_route_or_none() {
        let metrics = Metrics::new();
        let path = Some("/api/tasks/{id}");
        let unusual = Method::from_bytes(b"BREW").unwrap();
        for (method, path, status) in [(&Method::GET, path, 200), (&unusual, None, 404)] {
            let status = StatusCode::from_u16(status).unwrap();
            metrics.record(Series::new(method, path), status, Duration::ZERO);
        }
        let mut exposition = Exposition::default();
        metrics.register(exposition.registry());

        let text = exposition.render().await;

        for (method, route, status) in [("GET", "/api/tasks/{id}", "200"), (OTHER, OTHER, "404")] {
            let line = format!(
                "http_server_request_duration_seconds_count{{http_request_method=\"{method}\",http_route=\"{route}\",http_response_status_code=\"{status}\"}} 1"
            );
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}
