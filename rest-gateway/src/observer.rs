//! Measures, traces and logs each request.

use std::time::Duration;

use clap::ValueEnum;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use process::{
    logs::milliseconds,
    metrics::{Counters, Durations, Gauge, Histogram, Labels, Registry, Unit, durations},
    traces::{self, KeyValue, TraceSpan},
};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::{pipeline::Pipeline, request::REQUEST_ID};

/// The routes of health checks, which arrive every few seconds: neither traced nor logged.
const HEALTH_CHECKS: [&str; 2] = ["/healthz", "/readyz"];

/// Which requests have a line in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum AccessLog {
    Off,
    /// Those with a status from 400 on.
    Errors,
    #[default]
    All,
}

impl AccessLog {
    fn has(self, status: StatusCode) -> bool {
        match self {
            Self::Off => false,
            Self::Errors => status.is_client_error() || status.is_server_error(),
            Self::All => true,
        }
    }
}

/// Measures and logs a response as the client receives it. `problem` logs failures.
pub(crate) async fn observe<B>(
    pipeline: &Pipeline,
    request: Request<Incoming>,
    respond: impl AsyncFnOnce(Request<Incoming>) -> Response<B>,
) -> Response<B> {
    let metrics = &pipeline.metrics;
    let series = pipeline.series(request.method(), request.uri().path());
    let trace_span = trace_span(series, &request, &pipeline.gateway.public_url);
    let log_span = log_span(&request, trace_span.as_ref());
    let started = Instant::now();
    let active = ActiveRequest::new(metrics);
    let served = respond(request).instrument(log_span.clone());
    let response = traces::within(trace_span.as_ref(), served).await;
    drop(active);

    let duration = started.elapsed();
    metrics.record(series, response.status(), duration);
    if pipeline.access_log.has(response.status()) {
        log_span.in_scope(|| log(series, &response, duration));
    }
    if let Some(span) = trace_span {
        end(span, response.status());
    }
    response
}

/// The span of a request in its trace, unless it is a health check. It has the route and not the path,
/// which the client chooses.
fn trace_span(series: Series, request: &Request<Incoming>, public_url: &str) -> Option<TraceSpan> {
    if HEALTH_CHECKS.contains(&series.route) {
        return None;
    }
    let name = format_args!("{} {}", series.method, series.route);
    let span = TraceSpan::of_client_request(name, request.headers())?;
    span.set(|| {
        let (scheme, _) = public_url.split_once(':').unwrap_or_default();
        [
            KeyValue::new("http.request.method", series.method),
            KeyValue::new("http.route", series.route),
            KeyValue::new("url.scheme", scheme.to_owned()),
        ]
    });
    Some(span)
}

fn end(span: TraceSpan, status: StatusCode) {
    span.set(|| {
        let status = i64::from(status.as_u16());
        [KeyValue::new("http.response.status_code", status)]
    });
    if status.is_server_error() {
        span.set_failed();
    }
    span.end();
}

/// The fields that all log lines of a request have.
fn log_span(request: &Request<Incoming>, trace_span: Option<&TraceSpan>) -> Span {
    let request_id = request.headers().get(&REQUEST_ID);
    tracing::info_span!(
        "request",
        request.id = request_id.and_then(|id| id.to_str().ok()),
        trace.id = trace_span.map(|span| tracing::field::display(span.trace_id())),
        client.key = tracing::field::Empty,
    )
}

fn log<R>(series: Series, response: &Response<R>, duration: Duration) {
    if HEALTH_CHECKS.contains(&series.route) {
        return;
    }
    tracing::info!(
        http.method = series.method,
        http.route = series.route,
        http.status = response.status().as_u16(),
        duration_ms = milliseconds(duration),
        "request served"
    );
}

/// Counts a request until it is dropped; a client may disconnect before the response.
struct ActiveRequest<'a>(&'a Metrics);

impl<'a> ActiveRequest<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.active.inc();
        Self(metrics)
    }
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        self.0.active.dec();
    }
}

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

    #[test]
    fn the_access_log_has_all_requests_or_errors_or_none() {
        for (access_log, expected) in [
            ("all", [true, true, true, true]),
            ("errors", [false, false, true, true]),
            ("off", [false; 4]),
        ] {
            let access_log = AccessLog::from_str(access_log, false).unwrap();
            let statuses = [200, 304, 404, 503];
            let has = statuses.map(|status| access_log.has(StatusCode::from_u16(status).unwrap()));
            assert_eq!(has, expected);
        }
    }

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
