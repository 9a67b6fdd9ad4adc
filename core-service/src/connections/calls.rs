//! The calls that are under way: what a core that ends waits for. A connection without any
//! keeps nobody waiting.

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

/// How long there must have been no call before it is believed that there comes none: a caller
/// that has just been asked to go elsewhere may have sent one before it heard.
const SILENCE: Duration = Duration::from_secs(1);

/// Counts calls, each until the last byte of its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(TaskTracker);

impl Calls {
    /// Ends when no call has been under way for a moment.
    pub(crate) async fn none_under_way(&self) {
        let mut silent = false;
        loop {
            tokio::time::sleep(SILENCE / 2).await;
            let none = self.0.is_empty();
            if none && silent {
                return;
            }
            silent = none;
        }
    }
}

impl<S> Layer<S> for Calls {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            calls: self.0.clone(),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Counted<S> {
    inner: S,
    calls: TaskTracker,
}

impl<S> Service<Request<Body>> for Counted<S>
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
        let under_way = self.calls.token();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    // Given back with the body.
                    let _ = &under_way;
                    frame
                }))
            }))
        })
    }
}
