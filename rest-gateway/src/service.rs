//! The server: binds, accepts connections, drains and shuts down.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use admission::{Http, Http1, Pool, RequestMemory, Server, Timeouts};
use anyhow::Context;
use core_client::Cores;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::Request;
use hyper::body::Incoming;
use process::{
    health::HealthListener,
    listen::listen,
    metrics::{Exposition, Registry},
    tls,
};
use tokio::net::TcpListener;
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use crate::{
    config::Config,
    core_pool::CorePool,
    pipeline::Pipeline,
    rate_limits::RateLimits,
    request::Gateway,
    resources::{self_description::Documents, tokens::public_keys::PublicKeys},
    stack::{self, MAX_HEAD, MAX_HEADERS},
};

/// Twice [`MAX_HEAD`], above which a request is rejected with an error body.
const MAX_HEADER_LIST: u32 = 128 * 1024;
const MAX_STREAMS: u32 = 200;
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// What a request takes besides the bodies.
const REQUEST_BYTES: usize = 16 * 1024;

/// A gateway that is bound to its address. [`RestGateway::run`] serves requests.
pub struct RestGateway {
    listener: TcpListener,
    addr: SocketAddr,
    tls: Option<Arc<tls::Server>>,
    config: Config,
    pipeline: Arc<Pipeline>,
    health: Option<HealthListener>,
}

impl RestGateway {
    /// Binds to the configured address. Fails if the address is not available or a core's URL
    /// cannot be used.
    pub fn bind(config: Config) -> anyhow::Result<Self> {
        let listener = listen(config.listen, "--listen")?;
        let health = HealthListener::bind(config.health_listen)?;
        let mut gateway = Self::new(config, listener)?;
        gateway.health = health;
        Ok(gateway)
    }

    /// Uses a listener that is bound already; `config.listen` and `config.health_listen` are ignored.
    pub fn new(config: Config, listener: TcpListener) -> anyhow::Result<Self> {
        let addr = listener
            .local_addr()
            .context("the listener has no address")?;
        let tls = config.tls.open().context("cannot serve REST over TLS")?;
        if config.is_exposed(addr) {
            tracing::warn!(
                %addr,
                "the REST API is served unencrypted beyond this machine: set --tls-certificate and --tls-key, or name the proxies that serve it over TLS in --trusted-proxies"
            );
        }
        let public_url = match &config.public_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("{}://{addr}", config.tls.scheme()),
        };
        let gateway = Gateway {
            core: CorePool::new(Cores::new(&config.core_url, &config.core)?),
            documents: Documents::default(),
            public_keys: PublicKeys::default(),
            public_url,
            platform_name: config.platform_name.clone(),
            platform: config.platform.clone(),
            rate_limits: RateLimits::new(&config.rate_limits),
            draining: CancellationToken::new(),
        };
        let pipeline = Arc::new(Pipeline::new(gateway, &config));
        Ok(Self {
            listener,
            addr,
            tls: tls.map(Arc::new),
            config,
            pipeline,
            health: None,
        })
    }

    /// The bound address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Registers the metrics of this gateway.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.pipeline.register_metrics(registry);
        let listener = self.config.tls.tls_certificate.as_ref();
        let client = self.config.core.core_tls_certificate.as_ref();
        tls::register_expiry(&[("rest", listener), ("client", client)], registry);
    }

    /// Serves until `shutdown`, then finishes the requests in flight within the drain timeout.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        self.serve(shutdown).boxed()
    }

    async fn serve(mut self, shutdown: CancellationToken) {
        let _health_task = self.health.take().map(|health| {
            let mut exposition = Exposition::new();
            self.register_metrics(exposition.registry());
            let readiness = Arc::clone(&self.pipeline.gateway);
            AbortOnDropHandle::new(tokio::spawn(health.run(readiness, exposition)))
        });
        let max = self.config.max_connections;
        let shed = self.pipeline.metrics.shed.clone();
        let pipeline = Arc::clone(&self.pipeline);
        let gateway = Arc::clone(&pipeline.gateway);
        let server = Arc::new(Server {
            http: Http {
                http1: Some(Http1 {
                    max_headers: MAX_HEADERS,
                    max_head: MAX_HEAD,
                }),
                max_header_list: MAX_HEADER_LIST,
                max_streams: MAX_STREAMS,
                ping_interval: PING_INTERVAL,
                request: REQUEST_BYTES,
            },
            timeouts: Timeouts {
                head: self.config.read_timeout,
                idle: Some(self.config.idle_timeout),
                unread: self.config.idle_timeout / 2,
            },
            memory: Arc::clone(&self.pipeline.limits.memory),
            client: move |request: &Request<Incoming>, peer| {
                gateway.rate_limits.client_address(peer, request.headers())
            },
            service: move |request, memory: RequestMemory| {
                stack::serve(Arc::clone(&pipeline), request, memory)
            },
            closing: CancellationToken::new(),
            ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
        });
        let _end_on_return = server.end_on_drop();
        tracing::info!(addr = %self.addr, "serving the REST API");

        let grace = self.config.drain_grace;
        // Responses ask clients to reconnect in the grace period: closing a connection fails a request
        // that its client is sending.
        let grace_end = async {
            shutdown.cancelled().await;
            self.pipeline.gateway.draining.cancel();
            tokio::time::sleep(grace).await;
        };
        // The rest is for other peers, at once: what is evicted takes a while to end.
        let share = max - max / 8;
        let connections = Pool::new(max, share, shed, "connections");
        server
            .accept(self.listener, self.tls, connections, grace_end)
            .await;
        // Each connection ends with its next response; those still idle afterwards are closed.
        server.drained_within(grace).await;

        server.closing.cancel();
        if !server.drained_within(self.config.drain_timeout).await {
            tracing::warn!("requests were still in flight when the drain timeout expired");
        }
    }
}
