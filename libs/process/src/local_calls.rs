//! gRPC calls between the services of one process. They have no connection: a call is a function
//! call of the server's routes, with the same messages, metadata and middleware.

use std::{
    convert::Infallible,
    fmt,
    panic::AssertUnwindSafe,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use http::{Request, Response};
use tokio::sync::watch;
use tonic::{Status, body::Body, transport};
use tower::{Service, ServiceExt as _};

type ResponseFuture = BoxFuture<'static, Result<Response<Body>, transport::Error>>;

type Handler = Arc<dyn Fn(Request<Body>) -> ResponseFuture + Send + Sync>;

/// Serves the calls of [`LocalChannel`]s until it is dropped.
pub struct LocalServer(watch::Sender<Option<Handler>>);

/// Calls a [`LocalServer`]. Calls wait until it serves. Clones call the same server.
#[derive(Clone)]
pub struct LocalChannel(watch::Receiver<Option<Handler>>);

/// A server that does not serve yet, and a channel to it.
pub fn local_server() -> (LocalServer, LocalChannel) {
    let (server, channel) = watch::channel(None);
    (LocalServer(server), LocalChannel(channel))
}

impl LocalServer {
    /// Serves each call with a clone of `service`. A panic before the response starts fails the
    /// call; a panic while the response's body is polled reaches the caller.
    pub fn serve<S>(&self, service: S)
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
    {
        let handler = move |request| -> ResponseFuture {
            let response = AssertUnwindSafe(service.clone().oneshot(request)).catch_unwind();
            Box::pin(async {
                Ok(match response.await {
                    Ok(Ok(response)) => response,
                    Err(_) => Status::internal("the call panicked").into_http(),
                })
            })
        };
        self.0.send_replace(Some(Arc::new(handler)));
    }
}

impl Drop for LocalServer {
    /// Otherwise the channels would keep what the service uses, such as a database, open.
    fn drop(&mut self) {
        self.0.send_replace(None);
    }
}

impl Service<Request<Body>> for LocalChannel {
    type Response = Response<Body>;
    /// That of channels with a connection; it does not occur.
    type Error = transport::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let handler = self.0.borrow().clone();
        if let Some(handler) = handler {
            return handler(request);
        }
        let mut handlers = self.0.clone();
        Box::pin(async move {
            let handler = match handlers.wait_for(Option::is_some).await {
                Ok(handler) => handler.clone(),
                Err(_) => None,
            };
            match handler {
                Some(handler) => handler(request).await,
                None => Ok(Status::unavailable("the service has stopped").into_http()),
            }
        })
    }
}

impl fmt::Debug for LocalChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalChannel").finish_non_exhaustive()
    }
}

impl PartialEq for LocalChannel {
    fn eq(&self, other: &Self) -> bool {
        self.0.same_channel(&other.0)
    }
}

impl Eq for LocalChannel {}

#[cfg(test)]
mod tests {
    use tonic::Code;
    use tower::service_fn;

    use super::*;

    fn call(channel: &LocalChannel) -> impl Future<Output = Option<Code>> + use<> {
        let response = channel.clone().oneshot(Request::new(Body::empty()));
        async {
            let response = response.await.unwrap();
            Status::from_header_map(response.headers()).map(|status| status.code())
        }
    }

    #[tokio::test]
    async fn calls_wait_until_the_server_serves_and_fail_after_it_has_stopped() {
        let (server, channel) = local_server();
        let mut early = Box::pin(call(&channel));
        assert_eq!(early.as_mut().now_or_never(), None);

        let used = Arc::new(());
        let held = Arc::clone(&used);
        server.serve(service_fn(move |_| {
            let _held = Arc::clone(&held);
            async { Ok(Response::new(Body::empty())) }
        }));
        assert_eq!(early.await, None);
        assert_eq!(call(&channel).await, None);

        drop(server);
        assert_eq!(call(&channel).await, Some(Code::Unavailable));
        assert_eq!(Arc::strong_count(&used), 1);
    }

    #[tokio::test]
    async fn a_panic_fails_its_call() {
        let (server, channel) = local_server();
        server.serve(service_fn(|call: Request<Body>| async move {
            assert_ne!(call.uri(), "/panicking");
            Ok(Response::new(Body::empty()))
        }));
        let call = |path| {
            let call = Request::get(path).body(Body::empty()).unwrap();
            channel.clone().oneshot(call)
        };

        let panicked = call("/panicking").await.unwrap();
        let next = call("/next").await.unwrap();

        let status = |response: &Response<Body>| Status::from_header_map(response.headers());
        assert_eq!(status(&panicked).unwrap().code(), Code::Internal);
        assert!(status(&next).is_none());
    }

    #[tokio::test]
    async fn calls_fail_if_the_server_never_serves() {
        let (server, channel) = local_server();
        drop(server);
        assert_eq!(call(&channel).await, Some(Code::Unavailable));
    }
}
