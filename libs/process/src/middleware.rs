//! Tower middleware as async functions.

use tower::{Layer, Service, layer::layer_fn, service_fn};

/// A layer that calls a function for each request, with a clone of the inner service.
///
/// The layered service is always ready: the function waits for the inner one with `oneshot`.
pub fn middleware<S, F, Request, Response, Error, Fut>(
    function: F,
) -> impl Layer<
    S,
    Service = impl Service<Request, Response = Response, Error = Error, Future = Fut> + Clone,
> + Clone
where
    S: Clone,
    F: Fn(Request, S) -> Fut + Clone,
    Fut: Future<Output = Result<Response, Error>>,
{
    layer_fn(move |inner: S| {
        let function = function.clone();
        service_fn(move |request| function(request, inner.clone()))
    })
}
