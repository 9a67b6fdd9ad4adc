//! How long a call may take, and how many may be under way: when the database stands still,
//! callers are told so while they still listen, and those who wait are not without number.

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

/// Far beyond what any call takes while the database answers, and less than the gateway's 30 s.
/// A stream has begun by then.
const CALL: Duration = Duration::from_secs(15);

/// But for what waits for a shop's receiver: longer than a dispatcher and its report may take,
/// and less than the gateway's 30 s too.
const TEST: (&str, Duration) = ("/delivery.v1.Webhooks/TestWebhook", Duration::from_secs(27));

/// As many as two gateways send at most.
const CALLS: usize = 2048;

/// The prefix of our own rpcs' paths; health and reflection are always answered.
const OURS: &str = "/delivery.v1.";

/// Bounds the calls of a server.
pub(crate) fn layer<S>() -> impl Layer<S, Service = Patience<S>> + Clone {
    bounded(CALLS, CALL)
}

fn bounded<S>(calls: usize, time: Duration) -> impl Layer<S, Service = Patience<S>> + Clone {
    let places = Arc::new(Semaphore::new(calls));
    layer_fn(move |inner| Patience {
        inner,
        places: Arc::clone(&places),
        time,
    })
}

#[derive(Clone)]
pub(crate) struct Patience<S> {
    inner: S,
    places: Arc<Semaphore>,
    time: Duration,
}

impl<S, B, R> Service<Request<B>> for Patience<S>
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
        if !request.uri().path().starts_with(OURS) {
            return Box::pin(self.inner.call(request));
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return Box::pin(async { Ok(refuse(storage::Error::Overloaded)) });
        };
        let (test, longer) = TEST;
        let time = if request.uri().path() == test {
            longer
        } else {
            self.time
        };
        let answer = tokio::time::timeout(time, self.inner.call(request));
        Box::pin(async move {
            let _place = place;
            answer
                .await
                .unwrap_or_else(|_| Ok(refuse(storage::Error::Late)))
        })
    }
}

fn refuse<R: Default>(error: storage::Error) -> Response<R> {
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

    /// One call is never answered.
    fn silent(
        calls: usize,
        time: Duration,
    ) -> impl Service<Request<()>, Response = Response<()>, Error = Infallible> + Clone {
        ServiceBuilder::new()
            .layer(bounded(calls, time))
            .service(service_fn(async |request: Request<()>| {
                if request.uri().path().ends_with("Silent") {
                    std::future::pending::<()>().await;
                }
                Ok(Response::new(()))
            }))
    }

    #[tokio::test]
    async fn a_call_that_is_not_answered_in_time_is_told_to_come_again() {
        let service = silent(1, Duration::from_millis(1));

        let status = call(service.clone(), "/delivery.v1.Tasks/Silent").await;

        assert_eq!(status.map(|status| status.code()), Some(Code::Unavailable));
        let next = call(service, "/delivery.v1.Tasks/GetTask").await;
        assert!(next.is_none());
    }

    #[tokio::test]
    async fn no_more_calls_wait_than_may_and_health_is_still_told() {
        let service = silent(1, Duration::from_hours(1));
        let mut waiting = std::pin::pin!(call(service.clone(), "/delivery.v1.Tasks/Silent"));
        assert!(waiting.as_mut().now_or_never().is_none());

        let more = call(service.clone(), "/delivery.v1.Tasks/GetTask").await;
        let health = call(service, "/grpc.health.v1.Health/Check").await;

        let code = more.map(|status| status.code());
        assert_eq!(code, Some(Code::ResourceExhausted));
        assert!(health.is_none());
        assert!(waiting.now_or_never().is_none());
    }
}
