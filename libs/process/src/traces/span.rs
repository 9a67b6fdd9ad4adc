//! Spans: what a process does for a request, in the trace of that request.

use std::{fmt, time::Duration};

use http::HeaderMap;
use opentelemetry::{
    Context, KeyValue,
    context::FutureExt as _,
    trace::{Span as _, SpanKind, Status, TraceContextExt as _, TraceId, Tracer as _},
};
use opentelemetry_sdk::trace::SdkTracer;
use tokio_util::either::Either;
use tracing::Instrument as _;

use super::{export, propagation};

/// A place in a trace: a span of this process or, if it exports none, the span of its caller. Clones
/// are the same span.
#[derive(Clone, Debug)]
pub struct TraceSpan(Context);

impl TraceSpan {
    /// The span of a request from outside the platform: a child of its client's, or the first of a
    /// trace. At most the configured share of these traces is exported.
    pub fn of_client_request(name: fmt::Arguments<'_>, headers: &HeaderMap) -> Option<Self> {
        let mut parent = propagation::from_headers(headers);
        if export::tracer().is_some() && !export::is_selected() {
            parent = parent.as_ref().map(propagation::unsampled);
        }
        Self::continued(SpanKind::Server, name, parent)
    }

    /// The span of a request with these headers: a child of its sender's, or the first of a trace.
    pub fn of_request(name: fmt::Arguments<'_>, headers: &HeaderMap) -> Option<Self> {
        Self::continued(SpanKind::Server, name, propagation::from_headers(headers))
    }

    /// The span of a request that is sent because of an earlier one, the span of which was stored.
    pub fn of_stored(name: fmt::Arguments<'_>, traceparent: &str) -> Option<Self> {
        let parent = propagation::from_traceparent(traceparent);
        Self::continued(SpanKind::Client, name, parent)
    }

    /// The span of a call that is made for the current request; none if it has none.
    pub fn of_call(name: fmt::Arguments<'_>) -> Option<Self> {
        let tracer = export::tracer()?;
        let parent = Self::current()?;
        Some(start(tracer, SpanKind::Client, name, &parent.0))
    }

    /// The span that the current future runs in.
    pub fn current() -> Option<Self> {
        Context::map_current(|context| context.has_active_span().then(|| Self(context.clone())))
    }

    fn continued(
        kind: SpanKind,
        name: fmt::Arguments<'_>,
        parent: Option<Context>,
    ) -> Option<Self> {
        match export::tracer() {
            Some(tracer) => Some(start(tracer, kind, name, &parent.unwrap_or_default())),
            None => parent.map(Self),
        }
    }

    pub fn trace_id(&self) -> TraceId {
        self.0.span().span_context().trace_id()
    }

    /// The header to store for [`TraceSpan::of_stored`].
    pub fn traceparent(&self) -> Option<String> {
        propagation::traceparent(&self.0)
    }

    pub fn rename(&self, name: fmt::Arguments<'_>) {
        let span = self.0.span();
        if span.is_recording() {
            span.update_name(name.to_string());
        }
    }

    /// Adds attributes. Never a value that identifies a person or reveals a secret.
    pub fn set<const N: usize>(&self, attributes: impl FnOnce() -> [KeyValue; N]) {
        let span = self.0.span();
        if span.is_recording() {
            span.set_attributes(attributes());
        }
    }

    pub fn set_failed(&self) {
        self.0.span().set_status(Status::error(""));
    }

    /// Records an operation that ends now, as a child of this span.
    pub fn record<const N: usize>(
        &self,
        name: &'static str,
        duration: Duration,
        has_failed: bool,
        attributes: impl FnOnce() -> [KeyValue; N],
    ) {
        let Some(tracer) = export::tracer() else {
            return;
        };
        if !self.0.span().span_context().is_sampled() {
            return;
        }
        let now = opentelemetry::time::now();
        let mut span = tracer
            .span_builder(name)
            .with_kind(SpanKind::Client)
            .with_start_time(now.checked_sub(duration).unwrap_or(now))
            .with_attributes(attributes())
            .start_with_context(tracer, &self.0);
        if has_failed {
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(now);
    }

    /// Ends the span, which otherwise ends when its last clone is dropped.
    pub fn end(self) {
        self.0.span().end();
    }
}

fn start(
    tracer: &SdkTracer,
    kind: SpanKind,
    name: fmt::Arguments<'_>,
    parent: &Context,
) -> TraceSpan {
    let builder = tracer.span_builder(name.to_string()).with_kind(kind);
    let span = builder.start_with_context(tracer, parent);
    TraceSpan(parent.with_span(span))
}

/// Runs a future in a span, if there is one.
pub fn within<F: Future>(
    span: Option<&TraceSpan>,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    match span {
        Some(TraceSpan(context)) => Either::Left(future.with_context(context.clone())),
        None => Either::Right(future),
    }
}

/// The request that a future works for: what its log lines name, and its span.
#[derive(Clone, Debug)]
pub struct Origin {
    logs: tracing::Span,
    trace: Option<TraceSpan>,
}

impl Origin {
    /// The request that the current future works for.
    pub fn current() -> Self {
        Self {
            logs: tracing::Span::current(),
            trace: TraceSpan::current(),
        }
    }

    pub fn trace(&self) -> Option<&TraceSpan> {
        self.trace.as_ref()
    }

    /// Runs a future that is polled outside of the request's own future.
    pub fn run<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        within(self.trace.as_ref(), future.instrument(self.logs.clone()))
    }
}
