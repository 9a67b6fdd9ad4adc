//! One client connection: HTTP/1 and HTTP/2, malformed requests, idle timeout, graceful close.

use std::{convert::Infallible, net::IpAddr, sync::Arc, time::Duration};

use http::Version;
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use process::tls;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    activity::Activity,
    http1_guard::{Http1Guard, MAX_HEAD, MAX_HEADERS, Rejections, check_http2},
    pipeline::Pipeline,
    rate_limits::PeerAddr,
    stack,
};

/// The maximum size of an HTTP/2 header list in bytes, above which h2 itself responds, without a
/// body. Twice [`MAX_HEAD`], above which [`check_http2`] rejects a request with an error body.
const MAX_HEADER_LIST: u32 = 128 * 1024;
const MAX_STREAMS: u32 = 200;
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// Serves one client connection; cloned for each.
#[derive(Clone)]
pub(crate) struct ConnectionHandler {
    pub(crate) tls: Option<Arc<tls::Server>>,
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) read_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// Once cancelled, connections close after the responses in flight.
    pub(crate) closing: CancellationToken,
}

impl ConnectionHandler {
    /// Serves a connection until it closes, then releases its permit.
    pub(crate) async fn serve(self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        // Otherwise Nagle's algorithm delays small responses by 40 ms when a client delays ACKs.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        // Fails only if the connection is closed already.
        let Ok(peer) = stream.peer_addr() else { return };
        let Some(tls) = self.tls.clone() else {
            return self.serve_stream(stream, peer.ip(), permit).await;
        };
        let handshake = timeout(self.read_timeout, tls.acceptor().accept(stream));
        match self.closing.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => self.serve_stream(stream, peer.ip(), permit).await,
            Some(Ok(Err(error))) => tracing::info!(%error, "TLS handshake refused"),
            Some(Err(_)) | None => {}
        }
    }

    async fn serve_stream(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        peer: IpAddr,
        permit: OwnedSemaphorePermit,
    ) {
        let activity = Arc::new(Activity::default());
        let builder = builder(self.read_timeout);
        let rejections = Arc::new(Rejections::default());
        let connection = Http1Guard::new(stream, Arc::clone(&rejections));
        let service = {
            let activity = Arc::clone(&activity);
            let pipeline = self.pipeline;
            service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                let in_flight = activity.begin();
                request.extensions_mut().insert(PeerAddr(peer));
                let rejection = if request.version() < Version::HTTP_2 {
                    rejections.of_next_request()
                } else {
                    check_http2(request.uri(), request.headers()).err()
                };
                if let Some(rejection) = rejection {
                    request.extensions_mut().insert(rejection);
                }
                // Boxed, so that an idle connection does not keep space for it.
                let response = Box::pin(stack::respond(Arc::clone(&pipeline), request));
                async move {
                    let _in_flight = in_flight;
                    Ok::<_, Infallible>(response.await)
                }
            })
        };

        let connection = builder
            .serve_connection(TokioIo::new(connection), service)
            .into_owned();
        let mut connection = std::pin::pin!(connection);
        let mut is_closing = false;
        let result = loop {
            tokio::select! {
                result = connection.as_mut() => break result,
                () = self.closing.cancelled(), if !is_closing => {}
                () = activity.idle_for(self.idle_timeout), if !is_closing => {}
                // A peer that does not read its responses would keep its connection open forever.
                () = activity.idle_for(self.idle_timeout), if is_closing => return,
                // hyper's header timeout starts once the HTTP version is known; a client that
                // sends less than that would keep its connection open forever.
                () = activity.no_request_within(self.read_timeout) => return,
            }
            is_closing = true;
            connection.as_mut().graceful_shutdown();
        };
        if let Err(error) = result {
            tracing::debug!(error, "connection closed early");
        }
        drop(permit);
    }
}

fn builder(read_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(read_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_LIST)
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(KEEP_ALIVE_INTERVAL);
    builder
}
