//! Counts the calls in flight, which a core drains at shutdown. Idle connections do not count.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tower::{Layer, Service};

/// Calls count as drained after about this long without any: a client may send a call before it
/// receives the GOAWAY frame.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// A layer that counts calls, each until the last byte of its response.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(TaskTracker);

impl InFlight {
    /// Completes when two consecutive checks, half a [`QUIET_PERIOD`] apart, find no call.
    pub(crate) async fn drained(&self) {
        let mut was_idle = false;
        loop {
            tokio::time::sleep(QUIET_PERIOD / 2).await;
            let is_idle = self.0.is_empty();
            if is_idle && was_idle {
                return;
            }
            was_idle = is_idle;
        }
    }
}

impl<S> Layer<S> for InFlight {
    type Service = Tracked<S>;

    fn layer(&self, inner: S) -> Tracked<S> {
        Tracked {
            inner,
            in_flight: self.0.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tracked<S> {
    inner: S,
    in_flight: TaskTracker,
}

impl<S> Service<Request<Body>> for Tracked<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let guard = self.in_flight.token();
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await?;
            Ok(response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    // Dropped together with the body.
                    let _ = &guard;
                    frame
                }))
            }))
        })
    }
}
