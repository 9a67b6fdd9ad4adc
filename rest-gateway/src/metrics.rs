//! The metrics of a gateway.

use std::time::Duration;

use http::{Method, StatusCode};
use process::metrics::{Buckets, Counters, Gauge, HistogramTable, Labels, Registry, Unit};

/// Stands for paths without a route, for unusual methods and for unusual statuses.
const OTHER: &str = "_OTHER";

/// Methods of requests that are counted apart.
const METHODS: [&str; 8] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", OTHER,
];

/// Statuses of responses that are counted apart.
const STATUSES: &[&str] = &[
    "200", "201", "202", "204", "304", "400", "401", "403", "404", "405", "406", "408", "409",
    "410", "412", "413", "415", "422", "429", "431", "500", "501", "502", "503", "504", OTHER,
];

/// Metrics since the process started. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: HistogramTable,
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
    row: usize,
}

/// A path's number: 0 for paths without a route.
pub(crate) type PathNumber = usize;

impl Series {
    pub(crate) fn new(method: &Method, path: Option<(PathNumber, &'static str)>) -> Self {
        let (number, route) = path.unwrap_or((0, OTHER));
        let known = METHODS.iter().position(|known| *known == method.as_str());
        let known = known.unwrap_or(METHODS.len() - 1);
        Self {
            method: METHODS[known],
            route,
            row: number * METHODS.len() + known,
        }
    }
}

impl Metrics {
    /// For these paths, numbered from 1.
    pub(crate) fn new(paths: impl Iterator<Item = &'static str>) -> Self {
        let rows = [OTHER].into_iter().chain(paths).flat_map(|path| {
            METHODS.map(|method| -> Labels {
                vec![
                    ("http_request_method", method.to_owned()),
                    ("http_route", path.to_owned()),
                ]
            })
        });
        Self {
            requests: HistogramTable::new(
                rows.collect(),
                ("http_response_status_code", STATUSES),
                Buckets::Seconds,
            ),
            active: Gauge::default(),
            shed: Counters::new("reason", &["concurrency", "connections", "memory"]),
        }
    }

    /// Records a response.
    pub(crate) fn record(&self, series: Series, status: StatusCode, duration: Duration) {
        let known = STATUSES.iter().position(|known| *known == status.as_str());
        let known = known.unwrap_or(STATUSES.len() - 1);
        self.requests.observe(series.row, known, duration);
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
            self.shed.clone(),
        );
    }
}

#[cfg(test)]
mod tests {
    use process::metrics::Exposition;

    use super::*;

    #[tokio::test]
    async fn a_request_is_counted_by_its_route_or_none() {
        let metrics = Metrics::new(["/api/tasks/{id}"].into_iter());
        let path = Some((1, "/api/tasks/{id}"));
        let unusual = Method::from_bytes(b"BREW").unwrap();
        for (method, path, status) in [
            (&Method::GET, path, 200),
            (&Method::GET, path, 299),
            (&unusual, None, 404),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            metrics.record(Series::new(method, path), status, Duration::ZERO);
        }
        let mut exposition = Exposition::default();
        metrics.register(exposition.registry());

        let text = exposition.render().await;

        for (method, route, status) in [
            ("GET", "/api/tasks/{id}", "200"),
            ("GET", "/api/tasks/{id}", OTHER),
            (OTHER, OTHER, "404"),
        ] {
            let line = format!(
                "http_server_request_duration_seconds_count{{http_request_method=\"{method}\",http_route=\"{route}\",http_response_status_code=\"{status}\"}} 1"
            );
            assert!(text.contains(&line), "{line}\n{text}");
        }
    }
}
