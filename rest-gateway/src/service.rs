//! The server: bound, then run until told to end. Connections live here, requests in `stack`.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use core_client::Cores;
use http::{HeaderValue, Version, header::CONNECTION};
use hyper::service::{Service as _, service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;

use crate::{
    activity::Activity,
    config::Config,
    core::Core,
    rate_limits::{Peer, RateLimits},
    routes::{Gateway, Routes},
    stack::{self, Stack},
    vocabulary,
};

/// After an accept failed for want of resources, which only time brings back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 64 * 1024;
const MAX_HEADER_LIST_BYTES: u32 = 64 * 1024;
const MAX_STREAMS: u32 = 200;

/// A gateway that has its address, but serves only once it runs.
pub struct RestGateway {
    listener: TcpListener,
    addr: SocketAddr,
    config: Config,
    stack: Stack,
    draining: CancellationToken,
}

impl RestGateway {
    /// Listens where the configuration says. Fails when that address is not to be had, or when
    /// a core's URL is not one.
    pub async fn bind(config: Config) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(config.listen)
            .await
            .with_context(|| {
                format!(
                    "cannot listen on {}; choose another address with --listen, or port 0 for any free one",
                    config.listen
                )
            })?;
        Self::new(config, listener)
    }

    /// Takes a listener that is bound already; `config.listen` is ignored.
    pub fn new(config: Config, listener: TcpListener) -> anyhow::Result<Self> {
        let addr = listener
            .local_addr()
            .context("the listener has no address")?;
        let public_url = match &config.public_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("http://{addr}"),
        };
        let draining = CancellationToken::new();
        let gateway = Gateway {
            core: Core::new(Cores::new(&config.core_url, &config.core)?),
            openapi: vocabulary::openapi(&config.platform_name, &public_url)
                .to_string()
                .into(),
            public_url: public_url.into(),
            platform_name: config.platform_name.clone(),
            platform: config.platform.clone(),
            rate_limits: RateLimits::new(&config.rate_limits),
            draining: draining.clone(),
        };
        let stack = stack::new(&config, Routes::new(gateway, &config));
        Ok(Self {
            listener,
            addr,
            config,
            stack,
            draining,
        })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown`, then finishes what is in flight, within the drain timeout.
    pub async fn run(self, shutdown: CancellationToken) {
        let most = u32::try_from(self.config.max_connections).unwrap_or(u32::MAX);
        let connections = Arc::new(Semaphore::new(most as usize));
        let closing = CancellationToken::new();
        let cut_off = CancellationToken::new();
        let _cut_off_at_the_end = cut_off.clone().drop_guard();
        tracing::info!(addr = %self.addr, "serving the REST API");

        let draining = self.draining.clone();
        let serve = |(stream, permit)| {
            let connection = Connection {
                builder: connection_builder(self.config.read_timeout),
                stack: self.stack.clone(),
                read_timeout: self.config.read_timeout,
                idle_timeout: self.config.idle_timeout,
                draining: draining.clone(),
                closing: closing.clone(),
                permit,
            };
            let served = connection.serve(stream);
            tokio::spawn(cut_off.clone().run_until_cancelled_owned(served));
        };
        let ending = end_gently(&shutdown, &draining, self.config.drain_grace);
        let mut ending = std::pin::pin!(ending);
        loop {
            tokio::select! {
                accepted = self.accept(&connections) => match accepted {
                    Some(accepted) => serve(accepted),
                    None => break,
                },
                () = &mut ending => break,
            }
        }
        // Who is connected already, as far as the kernel knows, is not turned away.
        while let Ok(Some(accepted)) =
            tokio::time::timeout(Duration::ZERO, self.accept(&connections)).await
        {
            serve(accepted);
        }
        drop(self.listener);
        // Each connection ends with its next answer. Only those that ask for nothing are closed.
        let all_ended = connections.acquire_many(most);
        let _ = tokio::time::timeout(self.config.drain_grace, all_ended).await;

        closing.cancel();
        let all_ended = connections.acquire_many(most);
        if tokio::time::timeout(self.config.drain_timeout, all_ended)
            .await
            .is_err()
        {
            tracing::warn!("requests were still in flight when the drain timeout passed");
        }
    }

    /// The next connection. A failed accept is not an end.
    async fn accept(
        &self,
        connections: &Arc<Semaphore>,
    ) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let permit = Arc::clone(connections).acquire_owned().await.ok()?;
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return Some((stream, permit)),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Waits for `shutdown`, and then for the grace in which requests are still answered, each
/// with the advice to connect anew: a connection that is closed while its client writes to
/// it looks to that client like a failure.
async fn end_gently(shutdown: &CancellationToken, draining: &CancellationToken, grace: Duration) {
    shutdown.cancelled().await;
    draining.cancel();
    tokio::time::sleep(grace).await;
}

fn connection_builder(read_timeout: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(read_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(Duration::from_secs(30));
    builder
}

struct Connection {
    builder: auto::Builder<TokioExecutor>,
    stack: Stack,
    read_timeout: Duration,
    idle_timeout: Duration,
    /// Each answer advises to connect elsewhere.
    draining: CancellationToken,
    /// Connections end with the answers they owe.
    closing: CancellationToken,
    permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn serve(self, stream: TcpStream) {
        // Small answers wait for nothing: 40 ms each otherwise, when a client delays its ACKs.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        // Without one the connection is dead already.
        let Ok(peer) = stream.peer_addr() else { return };
        let activity = Arc::new(Activity::default());
        let service = {
            let activity = Arc::clone(&activity);
            let stack = TowerToHyperService::new(self.stack);
            let draining = self.draining;
            service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                let in_flight = activity.begin();
                request.extensions_mut().insert(Peer(peer.ip()));
                let is_http1 = request.version() < Version::HTTP_2;
                let answer = stack.call(request);
                let draining = draining.clone();
                async move {
                    let mut answer = answer.await.unwrap_or_else(|never| match never {});
                    if is_http1 && draining.is_cancelled() {
                        answer
                            .headers_mut()
                            .insert(CONNECTION, HeaderValue::from_static("close"));
                    }
                    drop(in_flight);
                    Ok::<_, Infallible>(answer)
                }
            })
        };

        let connection = self
            .builder
            .serve_connection(TokioIo::new(stream), service)
            .into_owned();
        let mut connection = std::pin::pin!(connection);
        let mut ends = false;
        let result = loop {
            tokio::select! {
                result = connection.as_mut() => break result,
                () = self.closing.cancelled(), if !ends => {}
                () = activity.idle(self.idle_timeout), if !ends => {}
                // hyper's header timeout begins with the HTTP version known; a client that never
                // sends that much would otherwise hold its connection for ever.
                () = activity.silence(self.read_timeout) => return,
            }
            ends = true;
            connection.as_mut().graceful_shutdown();
        };
        if let Err(error) = result {
            tracing::debug!(error, "a connection ended early");
        }
        drop(self.permit);
    }
}
