//! Measures, traces and logs each request.

use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use process::{
    logs::milliseconds,
    traces::{self, KeyValue, TraceSpan},
};
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::{
    metrics::{Metrics, Series},
    pipeline::Pipeline,
    request_id::REQUEST_ID,
};

/// The routes of health checks, which arrive every few seconds: neither traced nor logged.
const HEALTH_CHECKS: [&str; 2] = ["/healthz", "/readyz"];

/// Measures and logs a response as the client receives it. `error_response` logs failures.
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
    let active = Active::new(metrics);
    let served = respond(request).instrument(log_span.clone());
    let response = traces::within(trace_span.as_ref(), served).await;
    drop(active);

    let duration = started.elapsed();
    metrics.record(series, response.status(), duration);
    log_span.in_scope(|| log(series, &response, duration));
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
struct Active<'a>(&'a Metrics);

impl<'a> Active<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.active.inc();
        Self(metrics)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.dec();
    }
}
