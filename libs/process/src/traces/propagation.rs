//! The W3C headers `traceparent` and `tracestate`, of HTTP requests and gRPC calls.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator as _},
    trace::{SpanContext, TraceContextExt as _, TraceFlags},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A longer `tracestate` is not passed on: the standard asks for no more, and the headers of a call to
/// core are limited.
const MAX_TRACESTATE: usize = 512;

/// The sender's span; none without a valid `traceparent`.
pub(super) fn from_headers(headers: &HeaderMap) -> Option<Context> {
    if !headers.contains_key(TRACEPARENT) {
        return None;
    }
    let headers = Headers(headers);
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    context.has_active_span().then_some(context)
}

/// The same span, as one that its sender does not sample.
pub(super) fn unsampled(context: &Context) -> Context {
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
pub(super) fn from_traceparent(traceparent: &str) -> Option<Context> {
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
pub(super) fn traceparent(context: &Context) -> Option<String> {
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
