//! Sends a signed POST with one deadline for the whole request.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::{Extensions, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{
        self, Client,
        connect::{CaptureConnection, capture_connection},
    },
    rt::{TokioExecutor, TokioTimer},
};
use process::traces::{self, KeyValue, TraceSpan};
use proto::{Notification, Outcome, outcome::Failure};
use rustls::client::Resumption;

use crate::{
    Config,
    address_guard::{AddressGuard, Usage},
    attempt::Attempt,
    connector::{Connector, connector},
    metrics::Metrics,
    request::RequestTemplate,
    resolver::Resolver,
    response::ReceiverResponse,
    send_error::SendError,
    test_send,
};

/// How long idle connections stay open. Shorter than the five seconds of common servers, so that
/// receivers rarely close a connection as it is reused.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The buffer limit of a connection, for a response head or an HTTP/2 stream.
const BUFFER_SIZE: u32 = 64 * 1024;

/// How long a body may take after its head. It is for the log only, and a sender waits for it.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// Time reserved before lease expiry for reporting the outcome to core.
const REPORT_TIME: Duration = Duration::from_secs(10);

type HttpClient = Client<Connector, Full<Bytes>>;

/// Sends notifications. Reuses connections and TLS sessions.
pub(crate) struct Sender {
    client: HttpClient,
    /// Opens a connection for each test, without TLS session resumption: a test completes every
    /// phase, and the certificate is verified each time.
    test_client: HttpClient,
    template: RequestTemplate,
    timeout: Duration,
    clock: fn() -> SystemTime,
    metrics: Metrics,
}

impl Sender {
    #[expect(
        clippy::disallowed_methods,
        reason = "receivers compare webhook-timestamp with their own clocks: it is the system's"
    )]
    pub(crate) fn new(
        config: &Config,
        tls: rustls::ClientConfig,
        resolver: Resolver,
    ) -> anyhow::Result<Self> {
        let template = RequestTemplate {
            policy: config.egress.clone(),
            signature_header: config.signature_header()?,
        };
        let guard = AddressGuard::new(template.policy.clone(), resolver);
        let timeout = config.send_timeout;
        let mut test_tls = tls.clone();
        test_tls.resumption = Resumption::disabled();
        // As many idle connections as concurrent attempts: all webhooks may have the same host.
        let max_idle = usize::try_from(config.max_in_flight.get()).unwrap_or(usize::MAX);
        Ok(Self {
            client: client(connector(guard.clone(), tls, timeout), max_idle, timeout),
            test_client: client(connector(guard, test_tls, timeout), 0, timeout),
            template,
            timeout,
            clock: SystemTime::now,
            metrics: Metrics::default(),
        })
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Makes one attempt. Completes within the deadline.
    pub(crate) async fn send(&self, notification: Notification) -> Outcome {
        let span = trace_span(&notification);
        let is_test = notification.test;
        let started = Instant::now();
        let outcome = traces::within(span.as_ref(), self.attempt(notification)).await;
        if !is_test {
            self.metrics
                .count_attempt(outcome.failure(), started.elapsed());
        }
        if let Some(span) = span {
            end(span, &outcome);
        }
        outcome
    }

    async fn attempt(&self, notification: Notification) -> Outcome {
        let started = Instant::now();
        let attempt = Attempt::start();
        let timeout = self.timeout_of(&notification);
        let mut response = ReceiverResponse::default();
        let post = attempt.run(self.post(&notification, &mut response));
        let result = tokio::time::timeout(timeout, post)
            .await
            .unwrap_or(Err(SendError::Timeout(timeout)));

        // A status counts even if its body is cut off, or does not end: the body is for the log only.
        let result = match response.status {
            Some(status) if status.is_success() => Ok(()),
            Some(status) => Err(SendError::Status(status)),
            None => result,
        };
        let failure = match &result {
            Ok(()) => Failure::Unspecified,
            Err(error) => {
                log(&notification, error);
                error.failure()
            }
        };
        let outcome = Outcome {
            name: notification.name,
            lease_token: notification.lease_token,
            failure: failure.into(),
            status: response.status.map(|status| status.as_u16().into()),
            duration: prost_types::Duration::try_from(started.elapsed()).ok(),
            response_body: response.text(),
            retry_after: response
                .retry_after
                .and_then(|wait| prost_types::Duration::try_from(wait).ok()),
            ..Outcome::default()
        };
        if notification.test {
            test_send::describe(outcome, attempt.phases(), result.as_ref().err())
        } else {
            outcome
        }
    }

    /// The configured timeout, reduced to end before the lease expires: after that, another
    /// dispatcher may claim the notification, and core ignores the outcome of this attempt.
    fn timeout_of(&self, notification: &Notification) -> Duration {
        notification
            .lease
            .and_then(|lease| Duration::try_from(lease).ok())
            .map_or(self.timeout, |lease| {
                let before_expiry = lease.saturating_sub(REPORT_TIME).max(lease / 2);
                before_expiry.min(self.timeout)
            })
    }

    async fn post(
        &self,
        notification: &Notification,
        received: &mut ReceiverResponse,
    ) -> Result<(), SendError> {
        let request = self.template.build(notification, (self.clock)())?;
        let response = if notification.test {
            self.test_client.request(request).await
        } else {
            self.send_request(request).await
        }
        .map_err(SendError::NoResponse)?;

        let (head, body) = response.into_parts();
        received.read_head(head.status, &head.headers, (self.clock)());
        let _ = tokio::time::timeout(BODY_TIMEOUT, received.read_body(body)).await;
        Ok(())
    }

    /// Sends a request. Retries once if the receiver closed an idle connection as it was reused.
    async fn send_request(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        let mut first = request.clone();
        let connection = capture_connection(&mut first);
        let response = match self.client.request(first).await {
            Err(error) if !error.is_connect() && was_used(&connection) => {
                self.client.request(request).await
            }
            result => result,
        }?;
        if let Some(usage) = response.extensions().get::<Usage>() {
            usage.set_used();
        }
        Ok(response)
    }
}

/// A client with at most `max_idle` idle connections per host. HTTP/2 connections are pinged after
/// a third of the timeout and closed after another third without an answer: otherwise all requests
/// to a host would share a dead connection and fail until TCP closes it.
fn client(connector: Connector, max_idle: usize, timeout: Duration) -> HttpClient {
    let ping_timeout = timeout / 3;
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(max_idle)
        .http1_title_case_headers(true)
        .http1_max_buf_size(BUFFER_SIZE as usize)
        .http2_initial_stream_window_size(BUFFER_SIZE)
        .http2_initial_connection_window_size(BUFFER_SIZE)
        .http2_max_header_list_size(BUFFER_SIZE)
        .http2_keep_alive_interval(ping_timeout)
        .http2_keep_alive_timeout(ping_timeout)
        .build(connector)
}

fn was_used(connection: &CaptureConnection) -> bool {
    let mut extras = Extensions::new();
    if let Some(connected) = connection.connection_metadata().as_ref() {
        connected.get_extras(&mut extras);
    }
    extras.get::<Usage>().is_some_and(Usage::is_used)
}

/// The span of an attempt. Not the webhook's URL, which may contain a secret.
fn trace_span(notification: &Notification) -> Option<TraceSpan> {
    let span = TraceSpan::of_stored(format_args!("POST"), &notification.traceparent)?;
    span.set(|| {
        [
            KeyValue::new("http.request.method", "POST"),
            KeyValue::new("notification.name", notification.name.clone()),
            KeyValue::new("notification.attempt", i64::from(notification.attempt)),
        ]
    });
    Some(span)
}

fn end(span: TraceSpan, outcome: &Outcome) {
    if let Some(status) = outcome.status {
        span.set(|| {
            [KeyValue::new(
                "http.response.status_code",
                i64::from(status),
            )]
        });
    }
    let failure = outcome.failure();
    if failure != Failure::Unspecified {
        span.set(|| [KeyValue::new("error.type", failure.as_str_name())]);
        span.set_failed();
    }
    span.end();
}

fn log(notification: &Notification, error: &SendError) {
    let span = TraceSpan::current();
    let trace_id = || {
        let span = span.as_ref();
        span.map(|span| tracing::field::display(span.trace_id()))
    };
    let name = notification.name.as_str();
    let attempt = notification.attempt;
    match error {
        // A defect of core or the dispatcher, not of the receiver.
        SendError::Request(error) => tracing::error!(
            notification.name = name,
            notification.attempt = attempt,
            trace.id = trace_id(),
            error = error as &dyn std::error::Error,
            "notification cannot be sent"
        ),
        error => tracing::debug!(
            notification.name = name,
            notification.attempt = attempt,
            trace.id = trace_id(),
            error = error as &dyn std::error::Error,
            "attempt failed"
        ),
    }
}

#[cfg(test)]
pub(crate) mod tests;
