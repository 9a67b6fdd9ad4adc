//! Traces: the spans of requests, calls, database statements and notifications. They are exported by
//! OTLP if an endpoint is set. Otherwise no span is created; only the `traceparent` of a
//! request is read, logged and passed on.

mod config;
mod export;
mod propagation;
mod span;

pub use opentelemetry::KeyValue;

pub use self::{
    config::TraceConfig,
    export::{Traces, register_metrics, start},
    propagation::inject,
    span::{Origin, TraceSpan, within},
};
