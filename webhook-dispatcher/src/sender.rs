//! One signed POST with one deadline over all of it, and which answers count as received.

use std::{
    error::Error as _,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use http::{Extensions, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{
        self, Client,
        connect::{CaptureConnection, Connect, capture_connection},
    },
    rt::{TokioExecutor, TokioTimer},
};
use proto::{Notification, Outcome, outcome::Failure};
use rustls::client::Resumption;

use crate::{
    Config, ConfigError,
    address_guard::{self, AddressGuard, Usage},
    answer::Answer,
    connector::{self, Connector},
    request::{Form, RequestError},
    resolver::Resolver,
    webhook_tests::Trace,
};

/// Shorter than the five seconds after which common servers close a kept connection, so that
/// few are closed under us.
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// The most a connection buffers of an answer's head or an HTTP/2 stream.
const BUFFER: u32 = 64 * 1024;

/// What the way of an outcome back to core may take.
const REPORTING: Duration = Duration::from_secs(10);

/// Over connections of one kind.
pub(crate) type HttpClient<C> = Client<C, Full<Bytes>>;

/// Sends notifications. Connections and TLS sessions are kept between sends.
pub(crate) struct Sender {
    client: HttpClient<Connector>,
    guard: AddressGuard,
    tls: rustls::ClientConfig,
    form: Form,
    timeout: Duration,
    clock: fn() -> SystemTime,
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("no answer")]
    NoAnswer(#[source] legacy::Error),
    #[error("the answer breaks off")]
    BrokenAnswer(#[source] hyper::Error),
    #[error("answered with {0}, not 2xx")]
    Status(StatusCode),
    #[error("not over within {0:?}")]
    Timeout(Duration),
}

impl Error {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Request(RequestError::Url(_) | RequestError::Uri(_)) => Failure::AddressRefused,
            // Core's mistake rather than the receiver's, and never sent unsigned. There is no
            // failure for that: it is retried like any other while the log says what is wrong.
            Self::Request(
                RequestError::Name(_)
                | RequestError::NoSecret
                | RequestError::Secret(_)
                | RequestError::Header(_),
            )
            | Self::BrokenAnswer(_) => Failure::Protocol,
            Self::NoAnswer(error) => failure_without_answer(error),
            Self::Status(_) => Failure::Status,
            Self::Timeout(_) => Failure::Timeout,
        }
    }
}

fn failure_without_answer(error: &legacy::Error) -> Failure {
    use address_guard::Error as Guard;
    let connector = error.source().and_then(|source| source.downcast_ref());
    match connector {
        Some(connector::Error::Guard(Guard::Dns(_))) => Failure::Dns,
        Some(connector::Error::Guard(Guard::Refused(_))) => Failure::AddressRefused,
        // Nobody waits for an unwanted one, and so nobody hears of it.
        Some(connector::Error::Guard(Guard::Connect(_)) | connector::Error::Unwanted) => {
            Failure::Connect
        }
        Some(connector::Error::Tls(_)) => Failure::Tls,
        Some(connector::Error::Timeout(_)) => Failure::Timeout,
        // The pool was to have a connection, and lost it.
        None if error.is_connect() => Failure::Connect,
        // An HTTP/2 connection on which nobody answers any more.
        None if is_timeout(error) => Failure::Timeout,
        None => Failure::Protocol,
    }
}

fn is_timeout(error: &legacy::Error) -> bool {
    let cause: Option<&hyper::Error> = error.source().and_then(|source| source.downcast_ref());
    cause.is_some_and(hyper::Error::is_timeout)
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
    ) -> Result<Self, ConfigError> {
        let form = Form {
            policy: config.policy(),
            signature_header: config.signature_header()?,
        };
        let guard = AddressGuard::new(form.policy.clone(), resolver);
        Ok(Self {
            client: client(
                Connector::new(guard.clone(), tls.clone(), config.send_timeout),
                // All webhooks may have the same host: none that was busy is closed, to be opened
                // again for the next notification.
                usize::try_from(config.max_in_flight.get()).unwrap_or(usize::MAX),
                config.send_timeout,
            ),
            guard,
            tls,
            form,
            timeout: config.send_timeout,
            clock: SystemTime::now,
        })
    }

    /// The longest one attempt may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Makes one attempt. Ends within the deadline, whatever the receiver does.
    pub(crate) async fn send(&self, notification: Notification) -> Outcome {
        let exchange = |request| connector::attempt(self.exchange(request));
        self.attempt(notification, exchange).await.0
    }

    /// A connector that tells how far connections come, and permits what all do. It goes on with
    /// no TLS session of before: who is there is verified each time.
    pub(crate) fn traced(&self, trace: &Arc<Trace>) -> Connector {
        let mut tls = self.tls.clone();
        tls.resumption = Resumption::disabled();
        Connector::new(self.guard.traced(Arc::clone(trace)), tls, self.timeout)
    }

    /// Makes one attempt over some exchange; its outcome, and why it failed.
    pub(crate) async fn attempt<F>(
        &self,
        notification: Notification,
        exchange: impl FnOnce(Request<Full<Bytes>>) -> F,
    ) -> (Outcome, Option<Error>)
    where
        F: Future<Output = Result<Response<Incoming>, legacy::Error>>,
    {
        let started = Instant::now();
        let deadline = self.deadline(&notification);
        let mut answer = Answer::default();
        let post = self.post(&notification, exchange, &mut answer);
        let result = tokio::time::timeout(deadline, post)
            .await
            .unwrap_or(Err(Error::Timeout(deadline)));

        // A refusal is one, however slowly its text arrives.
        let result = match answer.status {
            Some(status) if !status.is_success() => Err(Error::Status(status)),
            _ => result,
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
            status: answer.status.map(|status| status.as_u16().into()),
            duration: prost_types::Duration::try_from(started.elapsed()).ok(),
            answer: answer.text(),
            retry_after: answer
                .retry_after
                .and_then(|wait| prost_types::Duration::try_from(wait).ok()),
        };
        (outcome, result.err())
    }

    /// The configured one, but well before the end of the lease: after it the notification may
    /// be another dispatcher's, and its outcome would come too late to count.
    fn deadline(&self, notification: &Notification) -> Duration {
        notification
            .lease
            .and_then(|lease| Duration::try_from(lease).ok())
            .map_or(self.timeout, |lease| {
                let in_time = lease.saturating_sub(REPORTING).max(lease / 2);
                in_time.min(self.timeout)
            })
    }

    async fn post<F>(
        &self,
        notification: &Notification,
        exchange: impl FnOnce(Request<Full<Bytes>>) -> F,
        answer: &mut Answer,
    ) -> Result<(), Error>
    where
        F: Future<Output = Result<Response<Incoming>, legacy::Error>>,
    {
        let request = self.form.fill(notification, (self.clock)())?;
        let response = exchange(request).await.map_err(Error::NoAnswer)?;

        let (head, body) = response.into_parts();
        answer.read_head(head.status, &head.headers, (self.clock)());
        answer.read_body(body).await.map_err(Error::BrokenAnswer)
    }

    /// A kept connection may be closed by the receiver just as we choose it: then the same
    /// request goes out once more.
    async fn exchange(
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

/// A client that keeps at most so many idle connections to a host. One over HTTP/2 has to answer
/// within a third of the deadline when it is asked whether it still does, which is as often: else
/// every request to the host would share it and fail, until TCP gives up.
pub(crate) fn client<C>(connector: C, max_idle: usize, deadline: Duration) -> HttpClient<C>
where
    C: Connect + Clone,
{
    let patience = deadline / 3;
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(KEEP_ALIVE)
        .pool_max_idle_per_host(max_idle)
        .http1_title_case_headers(true)
        .http1_max_buf_size(BUFFER as usize)
        .http2_initial_stream_window_size(BUFFER)
        .http2_initial_connection_window_size(BUFFER)
        .http2_max_header_list_size(BUFFER)
        .http2_keep_alive_interval(patience)
        .http2_keep_alive_timeout(patience)
        .build(connector)
}

fn was_used(connection: &CaptureConnection) -> bool {
    let mut extras = Extensions::new();
    if let Some(connected) = connection.connection_metadata().as_ref() {
        connected.get_extras(&mut extras);
    }
    extras.get::<Usage>().is_some_and(Usage::is_used)
}

fn log(notification: &Notification, error: &Error) {
    let name = notification.name.as_str();
    let attempt = notification.attempt;
    match error {
        // Core and dispatcher disagree: nothing the receiver could mend.
        Error::Request(error) => tracing::error!(
            notification.name = name,
            notification.attempt = attempt,
            error = error as &dyn std::error::Error,
            "notification cannot be sent"
        ),
        error => tracing::debug!(
            notification.name = name,
            notification.attempt = attempt,
            error = error as &dyn std::error::Error,
            "attempt failed"
        ),
    }
}

#[cfg(test)]
mod tests;
