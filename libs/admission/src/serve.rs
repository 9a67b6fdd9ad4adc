//! Accepts connections and serves them over HTTP until they end.

use std::{convert::Infallible, io, net::IpAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version};
use hyper::{
    body::{Body, Incoming},
    rt::Executor,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use process::{listen::accept, tls};
use rate_limits::peer_key;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_rustls::server::TlsStream;
use tokio_util::{
    io::{InspectReader, InspectWriter},
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use tower::BoxError;

use crate::{
    connection::{Check, Connection, Phase, RequestMemory, Timeouts},
    pool::{Pool, Usage},
    response::Sliced,
};

/// The most of a response that an HTTP/2 stream buffers beside its flow-control window.
const SEND_BUFFER: usize = 64 * 1024;

/// For a TLS handshake once connections close.
const CLOSING_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(1);

/// From this number of a peer's connections on, each new one has fewer streams: their heads are read before any limit
/// counts them.
const FULL_CONNECTIONS: usize = 4;

/// The least streams of a connection.
const MIN_STREAMS: usize = 16;

/// The address of the peer of a request, in its extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// The limits of HTTP.
#[derive(Clone, Copy, Debug)]
pub struct Http {
    /// None if only HTTP/2 is served.
    pub http1: Option<Http1>,
    /// In bytes, above which HTTP/2 requests are answered without a body.
    pub max_header_list: u32,
    /// On an HTTP/2 connection, of a peer that has few.
    pub max_streams: u32,
    /// Of HTTP/2 pings; a peer has half of it to answer.
    pub ping_interval: Duration,
    /// What a request and its response take besides their bodies, in bytes: heads, task and stream.
    pub request: usize,
}

/// The limits of HTTP/1.
#[derive(Clone, Copy, Debug)]
pub struct Http1 {
    pub max_headers: usize,
    /// In bytes, of all headers of a request.
    pub max_head: usize,
}

impl Http {
    /// The streams of the newest of a peer's connections.
    fn max_streams_of(&self, connections: usize) -> u32 {
        let max = self.max_streams as usize;
        let share = max * FULL_CONNECTIONS / connections.max(FULL_CONNECTIONS);
        u32::try_from(share.max(MIN_STREAMS)).unwrap_or(self.max_streams)
    }
}

/// Serves connections with a function.
pub struct Server<S, C> {
    pub http: Http,
    pub timeouts: Timeouts,
    /// For unsent responses, and for what the service takes of it.
    pub memory: Arc<Pool<IpAddr>>,
    pub service: S,
    /// The client of a request of a peer: the holder of what it takes. A proxy's requests are those of its clients.
    pub client: C,
    /// Once cancelled, connections close after the responses in flight.
    pub closing: CancellationToken,
    /// Once cancelled, connections end.
    pub ended: CancellationToken,
    pub tasks: TaskTracker,
}

impl<S, C, R, B> Server<S, C>
where
    C: Fn(&Request<Incoming>, IpAddr) -> IpAddr + Send + Sync + 'static,
    S: Fn(Request<Incoming>, RequestMemory) -> R + Send + Sync + 'static,
    R: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    /// Accepts connections until `stop`, and then those in the kernel's backlog.
    pub async fn accept(
        self: &Arc<Self>,
        listener: TcpListener,
        tls: Option<Arc<tls::Server>>,
        connections: Arc<Pool<IpAddr>>,
        stop: impl Future<Output = ()>,
    ) {
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                stream = accept(&listener) => self.admit(stream, tls.as_ref(), &connections),
                () = &mut stop => break,
            }
        }
        while let Ok(stream) = timeout(Duration::ZERO, accept(&listener)).await {
            self.admit(stream, tls.as_ref(), &connections);
        }
    }

    /// Whether all connections end within a time. None may be accepted any more.
    pub async fn drained_within(&self, time: Duration) -> bool {
        self.tasks.close();
        timeout(time, self.tasks.wait()).await.is_ok()
    }

    /// Ends all connections when it is dropped.
    pub fn end_on_drop(&self) -> DropGuard {
        self.ended.clone().drop_guard()
    }

    fn admit(
        self: &Arc<Self>,
        stream: TcpStream,
        tls: Option<&Arc<tls::Server>>,
        connections: &Arc<Pool<IpAddr>>,
    ) {
        // Fails only if the connection is closed already.
        let Ok(peer) = stream.peer_addr() else { return };
        let peer = peer.ip();
        let ended = self.ended.child_token();
        let Some(permit) = connections.take(peer_key(peer), 1, Usage::Idle, ended.clone()) else {
            return;
        };
        // Otherwise Nagle's algorithm delays small responses by 40 ms when a client delays ACKs.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let memory = Arc::clone(&self.memory);
        let connection = Connection::new(peer, permit, ended.clone(), memory, self.timeouts);
        let (server, tls) = (Arc::clone(self), tls.cloned());
        let max_streams = self
            .http
            .max_streams_of(connections.held_by(&peer_key(peer)));
        let lifetime = async move {
            let Some(tls) = tls else {
                return server.serve(stream, connection, max_streams).await;
            };
            // Boxed, like the rest: else a connection would keep space for it, and for its copies.
            match Box::pin(server.handshake(stream, &tls)).await {
                Some(Ok(stream)) => server.serve(stream, connection, max_streams).await,
                Some(Err(error)) => tracing::info!(%peer, %error, "TLS handshake refused"),
                None => {}
            }
        };
        self.tasks
            .spawn(ended.run_until_cancelled_owned(Box::pin(lifetime)));
    }

    /// The encrypted stream, in time.
    async fn handshake(
        &self,
        stream: TcpStream,
        tls: &tls::Server,
    ) -> Option<io::Result<TlsStream<TcpStream>>> {
        let closing = async {
            self.closing.cancelled().await;
            sleep(CLOSING_HANDSHAKE_TIMEOUT).await;
        };
        tokio::select! {
            stream = timeout(self.timeouts.head, tls.acceptor().accept(stream)) => stream.ok(),
            () = closing => None,
        }
    }

    async fn serve(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        connection: Arc<Connection>,
        max_streams: u32,
    ) {
        let mut builder = builder(&self.http, StreamExecutor(Arc::clone(&connection)));
        builder.http2().max_concurrent_streams(max_streams);
        let [of_reader, of_writer, of_service] = [(); 3].map(|()| Arc::clone(&connection));
        let stream = InspectReader::new(stream, move |bytes| of_reader.receive(bytes));
        let stream = InspectWriter::new(stream, move |_| of_writer.write());
        let server = Arc::clone(&self);
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(of_service.peer));
            let client = (server.client)(&request, of_service.peer);
            let is_http2 = request.version() == Version::HTTP_2;
            let exchange = of_service.begin(client, is_http2, server.http.request);
            if request.body().is_end_stream() {
                exchange.enter(Phase::Executing);
            }
            let is_connect = request.method() == Method::CONNECT;
            let (server, connection) = (Arc::clone(&server), Arc::clone(&of_service));
            // Boxed, so that an idle connection does not keep space for it.
            Box::pin(async move {
                let memory = RequestMemory(Arc::clone(&exchange));
                let mut response = (server.service)(request, memory).await;
                if is_connect && response.status().is_success() {
                    // Else hyper would begin a tunnel, and spawn for it what is no stream of an exchange.
                    *response.status_mut() = StatusCode::NOT_IMPLEMENTED;
                }
                let response = Sliced::respond(exchange, response);
                connection.wait_for_write().await;
                Ok::<_, Infallible>(response)
            })
        });
        let mut running = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let mut is_closing = false;
        let mut next_check = Instant::now();
        let result = loop {
            tokio::select! {
                result = running.as_mut() => break result,
                () = self.closing.cancelled(), if !is_closing => {}
                () = sleep_until(next_check) => match connection.check(Instant::now()) {
                    Check::Again(at) => {
                        next_check = at;
                        continue;
                    }
                    Check::Close => {}
                    Check::Abort => return,
                },
            }
            is_closing = true;
            connection.set_closing();
            running.as_mut().graceful_shutdown();
        };
        if let Err(error) = result {
            tracing::debug!(error, "connection closed early");
        }
    }
}

fn builder(http: &Http, executor: StreamExecutor) -> auto::Builder<StreamExecutor> {
    let mut builder = auto::Builder::new(executor);
    if let Some(http1) = http.http1 {
        // The timeout of heads is the connection's: hyper's would end idle connections too.
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_headers(http1.max_headers)
            .max_buf_size(http1.max_head);
    } else {
        builder = builder.http2_only();
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(http.max_header_list)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(http.ping_interval)
        .keep_alive_timeout(http.ping_interval / 2);
    builder
}

/// Runs the streams of an HTTP/2 connection, each until its exchange must end. hyper calls the service of
/// a request and then spawns its stream, before it accepts the next: so the exchange that began last is
/// that of the stream.
#[derive(Clone)]
struct StreamExecutor(Arc<Connection>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        match self.0.take_begun() {
            // Reset without a task: a peer may begin any number of them.
            Some(ended) if ended.is_cancelled() => drop(stream),
            Some(ended) => drop(tokio::spawn(async move {
                ended.run_until_cancelled_owned(stream).await;
            })),
            None => drop(tokio::spawn(stream)),
        }
    }
}

#[cfg(test)]
mod tests;
