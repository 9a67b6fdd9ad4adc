//! The server: binds, accepts connections, drains and shuts down.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context;
use core_client::Cores;
use futures_util::{FutureExt as _, future::BoxFuture};
use process::{
    health::HealthListener,
    listen::{accept_permitted, listen},
    metrics::{Exposition, Registry},
    tls,
};
use tokio::{net::TcpListener, sync::Semaphore, time::timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    config::Config, connection::ConnectionHandler, core_pool::CorePool, gateway::Gateway,
    pipeline::Pipeline, rate_limits::RateLimits,
};

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
            openapi: OnceLock::new(),
            public_url,
            platform_name: config.platform_name.clone(),
            platform: config.platform.clone(),
            rate_limits: RateLimits::new(&config.rate_limits),
            demo_courier: config.demo_courier.clone(),
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
        if let Some(certificate) = &self.config.tls.tls_certificate {
            tls::register_expiry("rest", certificate.clone(), registry);
        }
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
            let health = health.with_metrics(exposition).run(readiness);
            AbortOnDropHandle::new(tokio::spawn(health))
        });
        let certificates = [
            &self.config.tls.tls_certificate,
            &self.config.core.core_tls_certificate,
        ];
        let certificates = certificates.into_iter().flatten().cloned().collect();
        let _certificates =
            AbortOnDropHandle::new(tokio::spawn(tls::warn_of_expiry_daily(certificates)));
        let max = u32::try_from(self.config.max_connections).unwrap_or(u32::MAX);
        let permits = Arc::new(Semaphore::new(max as usize));
        let closing = CancellationToken::new();
        let abort = CancellationToken::new();
        let _abort_on_return = abort.clone().drop_guard();
        tracing::info!(addr = %self.addr, "serving the REST API");

        let handler = ConnectionHandler {
            tls: self.tls.clone(),
            pipeline: Arc::clone(&self.pipeline),
            read_timeout: self.config.read_timeout,
            idle_timeout: self.config.idle_timeout,
            closing: closing.clone(),
        };
        let serve = |(stream, permit)| {
            let served = handler.clone().serve(stream, permit);
            tokio::spawn(abort.clone().run_until_cancelled_owned(served));
        };
        let draining = &self.pipeline.gateway.draining;
        // Responses ask clients to reconnect in the grace period: closing a connection fails a request
        // that its client is sending.
        let mut grace_end = std::pin::pin!(async {
            shutdown.cancelled().await;
            draining.cancel();
            tokio::time::sleep(self.config.drain_grace).await;
        });
        loop {
            tokio::select! {
                accepted = accept_permitted(&self.listener, &permits) => serve(accepted),
                () = &mut grace_end => break,
            }
        }
        // Connections in the kernel's backlog are still served.
        while let Ok(accepted) =
            timeout(Duration::ZERO, accept_permitted(&self.listener, &permits)).await
        {
            serve(accepted);
        }
        drop(self.listener);
        // Each connection ends with its next response; those still idle afterwards are closed.
        let all_closed = permits.acquire_many(max);
        let _ = timeout(self.config.drain_grace, all_closed).await;

        closing.cancel();
        let all_closed = permits.acquire_many(max);
        if timeout(self.config.drain_timeout, all_closed)
            .await
            .is_err()
        {
            tracing::warn!("requests were still in flight when the drain timeout expired");
        }
    }
}
