//! A proxy that loses confirmations of writes, as a core does whose commits hang.

use std::{
    convert::Infallible,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use hyper::{Request, Response, body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tonic::{
    Status,
    body::Body,
    client::GrpcService as _,
    transport::{Channel, Endpoint},
};

/// Forwards calls to a core, but answers `UNAVAILABLE` to the first creations of API clients after
/// they are stored. It stops when the test ends.
pub(crate) struct LossyProxy {
    /// `http://127.0.0.1:<port>`.
    pub(crate) url: String,
}

impl LossyProxy {
    /// In front of a core, with the number of creations that are not confirmed.
    pub(crate) async fn with_unconfirmed(core_url: &str, unconfirmed: usize) -> Self {
        let core = Endpoint::from_shared(core_url.to_owned()).unwrap();
        let core = core.connect_lazy();
        let unconfirmed = Arc::new(AtomicUsize::new(unconfirmed));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (core, unconfirmed) = (core.clone(), Arc::clone(&unconfirmed));
                let service = service_fn(move |request| {
                    forward(core.clone(), Arc::clone(&unconfirmed), request)
                });
                let server = http2::Builder::new(TokioExecutor::new());
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url }
    }
}

async fn forward(
    mut core: Channel,
    unconfirmed: Arc<AtomicUsize>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let creates = request.uri().path().ends_with("/CreateApiClient");
    poll_fn(|context| core.poll_ready(context)).await.unwrap();
    let response = core.call(request.map(Body::new)).await.unwrap();
    let decrement = |left: usize| left.checked_sub(1);
    let is_lost = creates
        && unconfirmed
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement)
            .is_ok();
    if is_lost {
        return Ok(Status::unavailable("try again").into_http());
    }
    Ok(response)
}
