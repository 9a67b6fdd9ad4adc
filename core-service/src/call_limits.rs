//! Timeout and concurrency limit for gRPC calls. While the database hangs, callers get an error
//! before their own timeout, and the number of waiting calls stays bounded.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use tokio::sync::Semaphore;
use tonic::Status;
use tower::{Layer, Service, layer::layer_fn};

use crate::error::Error;

/// Timeout of a call until its response starts. No call takes nearly as long while the database
/// responds; the gateway's own timeout is 30 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

const TEST_WEBHOOK: &str = "/delivery.v1.Webhooks/TestWebhook";

/// Timeout of `TestWebhook`, which waits for a dispatcher to send and report. Also less than the
/// gateway's 30 s.
const TEST_WEBHOOK_TIMEOUT: Duration = Duration::from_secs(27);

/// Limit of calls in flight: as many as two gateways send, each with its default limit of 1024.
const MAX_CALLS: usize = 2048;

/// Path prefix of limited calls. Health checks and reflection are not limited.
const LIMITED_PREFIX: &str = "/delivery.v1.";

/// The limits of a server.
pub(crate) fn layer<S>() -> impl Layer<S, Service = CallLimits<S>> + Clone {
    with_limits(MAX_CALLS, CALL_TIMEOUT)
}

fn with_limits<S>(
    calls: usize,
    timeout: Duration,
) -> impl Layer<S, Service = CallLimits<S>> + Clone {
    let permits = Arc::new(Semaphore::new(calls));
    layer_fn(move |inner| CallLimits {
        inner,
        permits: Arc::clone(&permits),
        timeout,
    })
}

#[derive(Clone)]
pub(crate) struct CallLimits<S> {
    inner: S,
    permits: Arc<Semaphore>,
    timeout: Duration,
}

impl<S, B, R> Service<Request<B>> for CallLimits<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: Default + Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !request.uri().path().starts_with(LIMITED_PREFIX) {
            return Box::pin(self.inner.call(request));
        }
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            return Box::pin(async { Ok(reject(storage::Error::Overloaded)) });
        };
        let timeout = if request.uri().path() == TEST_WEBHOOK {
            TEST_WEBHOOK_TIMEOUT
        } else {
            self.timeout
        };
        let response = tokio::time::timeout(timeout, self.inner.call(request));
        Box::pin(async move {
            let _permit = permit;
            response
                .await
                .unwrap_or_else(|_| Ok(reject(storage::Error::Timeout)))
        })
    }
}

fn reject<R: Default>(error: storage::Error) -> Response<R> {
    Status::from(Error::from(error)).into_http()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use tonic::Code;
    use tower::{ServiceBuilder, ServiceExt, service_fn};

    use super::*;

    async fn call<S>(service: S, path: &str) -> Option<Status>
    where
        S: Service<Request<()>, Response = Response<()>, Error = Infallible>,
    {
        let request = Request::get(path).body(()).unwrap();
        let response = service.oneshot(request).await.unwrap();
        Status::from_header_map(response.headers())
    }

    /// A service that never responds to `Hanging`.
    fn hanging_service(
        calls: usize,
        timeout: Duration,
    ) -> impl Service<Request<()>, Response = Response<()>, Error = Infallible> + Clone {
        ServiceBuilder::new()
            .layer(with_limits(calls, timeout))
            .service(service_fn(async |request: Request<()>| {
                if request.uri().path().ends_with("Hanging") {
                    std::future::pending::<()>().await;
                }
                Ok(Response::new(()))
            }))
    }

    #[tokio::test]
    async fn a_call_without_a_response_in_time_is_unavailable() {
        let service = hanging_service(1, Duration::from_millis(1));

        let status = call(service.clone(), "/delivery.v1.Tasks/Hanging").await;

        assert_eq!(status.map(|status| status.code()), Some(Code::Unavailable));
        let next = call(service, "/delivery.v1.Tasks/GetTask").await;
        assert!(next.is_none());
    }

    #[tokio::test]
    async fn calls_beyond_the_limit_are_rejected_but_not_health_checks() {
        let service = hanging_service(1, Duration::from_hours(1));
        let mut waiting = std::pin::pin!(call(service.clone(), "/delivery.v1.Tasks/Hanging"));
        assert!(waiting.as_mut().now_or_never().is_none());

        let more = call(service.clone(), "/delivery.v1.Tasks/GetTask").await;
        let health = call(service, "/grpc.health.v1.Health/Check").await;

        let code = more.map(|status| status.code());
        assert_eq!(code, Some(Code::ResourceExhausted));
        assert!(health.is_none());
        assert!(waiting.now_or_never().is_none());
    }
}
