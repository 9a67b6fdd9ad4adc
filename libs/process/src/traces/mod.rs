//! Traces: the spans of requests, calls, database statements and notifications, and the W3C headers
//! `traceparent` and `tracestate` that continue them. Spans are exported by OTLP if an endpoint is set.
//! Otherwise no span is created; only the `traceparent` of a request is read, logged and passed on.

mod export;

use std::{fmt, sync::OnceLock, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    context::FutureExt as _,
    propagation::{Extractor, Injector, TextMapPropagator as _},
    trace::{
        Span as _, SpanContext, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
        Tracer as _,
    },
};
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracer};
use tokio_util::either::Either;
use tracing::Instrument as _;

pub use opentelemetry::KeyValue;

pub use self::export::{TraceConfig, Traces, register_metrics, start};
use crate::random;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A longer `tracestate` is not passed on: the standard asks for no more, and the headers of a call to
/// core are limited.
const MAX_TRACESTATE: usize = 512;

/// The tracer of this process, and the share of traces that is exported; empty unless spans are exported.
static TRACER: OnceLock<(SdkTracer, f64)> = OnceLock::new();

/// A place in a trace: a span of this process or, if it exports none, the span of its caller. Clones
/// are the same span.
#[derive(Clone, Debug)]
pub struct TraceSpan(Context);

impl TraceSpan {
    /// The span of a request from outside the platform: a child of its client's, or the first of a
    /// trace. At most the configured share of these traces is exported.
    pub fn of_client_request(name: fmt::Arguments<'_>, headers: &HeaderMap) -> Option<Self> {
        let mut parent = from_headers(headers);
        // Random: the client chooses the id of its trace.
        if TRACER
            .get()
            .is_some_and(|(_, sampling)| random::fraction() >= *sampling)
        {
            parent = parent.as_ref().map(unsampled);
        }
        Self::continued(SpanKind::Server, name, parent)
    }

    /// The span of a request with these headers: a child of its sender's, or the first of a trace.
    pub fn of_request(name: fmt::Arguments<'_>, headers: &HeaderMap) -> Option<Self> {
        Self::continued(SpanKind::Server, name, from_headers(headers))
    }

    /// The span of a request that is sent because of an earlier one, the span of which was stored.
    pub fn of_stored(name: fmt::Arguments<'_>, traceparent: &str) -> Option<Self> {
        let parent = from_traceparent(traceparent);
        Self::continued(SpanKind::Client, name, parent)
    }

    /// The span of a call that is made for the current request; none if it has none.
    pub fn of_call(name: fmt::Arguments<'_>) -> Option<Self> {
        let (tracer, _) = TRACER.get()?;
        let parent = Self::current()?;
        Some(start_span(tracer, SpanKind::Client, name, &parent.0))
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
        match TRACER.get() {
            Some((tracer, _)) => Some(start_span(tracer, kind, name, &parent.unwrap_or_default())),
            None => parent.map(Self),
        }
    }

    pub fn trace_id(&self) -> TraceId {
        self.0.span().span_context().trace_id()
    }

    /// The header to store for [`TraceSpan::of_stored`].
    pub fn traceparent(&self) -> Option<String> {
        traceparent(&self.0)
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
        let Some((tracer, _)) = TRACER.get() else {
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

fn start_span(
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

/// The sender's span; none without a valid `traceparent`.
fn from_headers(headers: &HeaderMap) -> Option<Context> {
    if !headers.contains_key(TRACEPARENT) {
        return None;
    }
    let headers = Headers(headers);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    context.has_active_span().then_some(context)
}

/// The same span, as one that its sender does not sample.
fn unsampled(context: &Context) -> Context {
    let active = context.span();
    let span = active.span_context();
    Context::new().with_remote_span_context(SpanContext::new(
        span.trace_id(),
        span.span_id(),
        TraceFlags::NOT_SAMPLED,
        true,
        span.trace_state().clone(),
    ))
}

/// The span that a `traceparent` names, if it is valid.
fn from_traceparent(traceparent: &str) -> Option<Context> {
    let value = HeaderValue::try_from(traceparent).ok()?;
    from_headers(&HeaderMap::from_iter([(TRACEPARENT, value)]))
}

/// Adds the headers of the current span, if there is one.
pub fn inject(headers: &mut HeaderMap) {
    Context::map_current(|context| {
        if context.has_active_span() {
            TraceContextPropagator::new().inject_context(context, &mut HeadersMut(headers));
        }
    });
}

/// The `traceparent` of a span.
fn traceparent(context: &Context) -> Option<String> {
    let mut headers = HeaderMap::new();
    TraceContextPropagator::new().inject_context(context, &mut HeadersMut(&mut headers));
    let value = headers.get(TRACEPARENT)?;
    value.to_str().ok().map(str::to_owned)
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    /// `None` if the header is absent, repeated or longer than [`MAX_TRACESTATE`].
    fn get(&self, key: &str) -> Option<&str> {
        let mut values = self.0.get_all(key).iter();
        let value = values.next()?.to_str().ok()?;
        let is_alone = values.next().is_none();
        let is_short = value.len() <= MAX_TRACESTATE;
        (is_alone && is_short).then_some(value)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeadersMut<'a>(&'a mut HeaderMap);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        let name = HeaderName::try_from(key);
        let value = HeaderValue::try_from(value);
        if let (Ok(name), Ok(value)) = (name, value)
            && !value.is_empty()
        {
            self.0.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        });
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, value);
        }
        headers
    }

    fn passed_on(received: &[(&'static str, &str)]) -> Option<HeaderMap> {
        let context = from_headers(&headers(received))?;
        let _guard = context.attach();
        let mut sent = HeaderMap::new();
        inject(&mut sent);
        Some(sent)
    }

    #[test]
    fn a_valid_context_is_passed_on_and_others_are_ignored() {
        let with_state = [("traceparent", VALID), ("tracestate", "a=1,b=2")];
        assert_eq!(passed_on(&with_state), Some(headers(&with_state)));
        let long = format!("a={}", "x".repeat(MAX_TRACESTATE));
        for state in ["", "no state", &long] {
            let received = [("traceparent", VALID), ("tracestate", state)];
            let expected = headers(&[("traceparent", VALID)]);
            assert_eq!(passed_on(&received), Some(expected), "{state}");
        }
        for wrong in [
            "",
            "x",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        ] {
            assert_eq!(passed_on(&[("traceparent", wrong)]), None, "{wrong}");
            assert!(from_traceparent(wrong).is_none(), "{wrong}");
        }
        let twice = [("traceparent", VALID), ("traceparent", VALID)];
        assert_eq!(passed_on(&twice), None);
        assert_eq!(passed_on(&[("tracestate", "a=1")]), None);
    }

    #[test]
    fn a_stored_traceparent_is_the_one_that_was_received() {
        let context = from_traceparent(VALID).unwrap();
        assert_eq!(traceparent(&context).as_deref(), Some(VALID));
    }
}
