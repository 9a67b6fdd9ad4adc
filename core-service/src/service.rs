//! A core: gRPC services on its listeners, and in the all-in-one for its other services, with their
//! background tasks.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use admission::{Http, Pool, RequestMemory, Server, Timeouts};
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use http::Request;
use hyper::body::Incoming;
use process::{
    clock::Clock,
    health::HealthListener,
    listen::{ListenError, listen},
    local_calls::LocalServer,
    metrics::{Counters, Exposition, Registry},
    tls,
};
use rate_limits::peer_key;
use tokio::net::TcpListener;
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};
use tonic::{
    body::Body,
    service::{Routes, RoutesBuilder},
};
use tonic_health::{
    ServingStatus,
    pb::health_server::{Health, HealthServer},
    server::HealthReporter,
};
use tower::{Layer, Service, ServiceBuilder, ServiceExt as _, layer::layer_fn, service_fn};

use crate::{
    auth::rate_limits::RateLimits,
    call_limits::{CallLimits, CountedBody},
    call_observer::{CallObserver, CallsInFlight},
    config::Config,
    metrics::Metrics,
    platform_metrics::PlatformMetrics,
    readiness::CoreReadiness,
    startup::{self, Resources, StartError},
    wiring::{self, Lifecycle},
};

const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval of HTTP/2 pings on idle connections.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// What a call takes besides its messages.
const REQUEST_BYTES: usize = 32 * 1024;

/// Limit of calls in flight on one connection: more than the default limit of a gateway, 1024, all
/// of whose calls use one connection.
const MAX_CALLS_PER_CONNECTION: u32 = 1280;

/// From this size of a call's headers on, in bytes, HTTP/2 rejects it without a status.
const MAX_HEADER_BYTES: u32 = 64 * 1024;

/// Limit of the open connections of a listener.
const MAX_CONNECTIONS: usize = 4096;

/// Memory for unsent responses, in bytes. A peer has at most half of it.
const MEMORY: usize = 256 << 20;

const TIMEOUTS: Timeouts = Timeouts {
    head: Duration::from_secs(10),
    idle: None,
    unread: Duration::from_secs(30),
};

pub struct CoreService {
    config: Config,
    resources: Resources,
    listener: TcpListener,
    addr: SocketAddr,
    tls: Option<tls::Server>,
    plaintext_listener: Option<TcpListener>,
    local_server: Option<LocalServer>,
    health: Option<HealthListener>,
    metrics: Metrics,
    exposition: Exposition,
}

impl CoreService {
    /// Binds the configured address and opens a core with the system's clock.
    pub async fn bind(config: Config) -> Result<Self, StartError> {
        let listener = listen(config.listen, "--listen")?;
        Self::new(config, listener, Clock::system()).await
    }

    pub fn new(
        config: Config,
        listener: TcpListener,
        clock: Clock,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        Self::open(config, listener, clock).boxed()
    }

    async fn open(config: Config, listener: TcpListener, clock: Clock) -> Result<Self, StartError> {
        let addr = listener.local_addr().map_err(|source| ListenError {
            addr: config.listen,
            flag: "--listen",
            source,
        })?;
        let tls = config.tls.open()?;
        if tls.is_none() && !addr.ip().is_loopback() && !config.allow_plaintext {
            return Err(StartError::Misconfigured(format!(
                "gRPC on {addr} would send tokens and secrets unencrypted: serve it over TLS (core-service has --tls-certificate and --tls-key, delivery has --grpc-tls-certificate and --grpc-tls-key), listen on a loopback address, or set --allow-plaintext"
            )));
        }
        config.deliveries.check()?;
        let health = HealthListener::bind(config.health_listen)?;
        let mut resources = startup::open(&config, clock, health.as_ref()).await?;
        let metrics = Metrics::new();
        let exposition = expose(&metrics, &config, &mut resources);
        Ok(Self {
            config,
            resources,
            listener,
            addr,
            tls,
            plaintext_listener: None,
            local_server: None,
            health,
            metrics,
            exposition,
        })
    }

    /// Also serves a listener on loopback without TLS.
    #[must_use]
    pub fn with_plaintext_listener(mut self, listener: Option<TcpListener>) -> Self {
        self.plaintext_listener = listener;
        self
    }

    /// Also serves the other services of this process.
    #[must_use]
    pub fn with_local_server(mut self, server: LocalServer) -> Self {
        self.local_server = Some(server);
        self
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The metrics that are served at the health listener. The all-in-one adds those of its other
    /// parts.
    pub fn registry(&mut self) -> &mut Registry {
        self.exposition.registry()
    }

    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// Serves until shutdown, then drains the calls in flight.
    pub fn run(self, shutdown: CancellationToken) -> BoxFuture<'static, Result<(), StartError>> {
        self.serve(shutdown).boxed()
    }

    async fn serve(self, shutdown: CancellationToken) -> Result<(), StartError> {
        let storage = Arc::clone(&self.resources.storage);
        let readiness = Arc::new(CoreReadiness::new(
            &storage,
            self.resources.clock.clone(),
            &self.resources.gazetteer,
            &self.config,
            shutdown.clone(),
        ));
        let lifecycle = Lifecycle::default();
        let rate_limits = Arc::new(RateLimits::new(
            &self.config.rate_limits,
            self.metrics.calls.rate_limited.clone(),
        ));
        let (health, health_server) = tonic_health::server::health_reporter();
        let mut routes = routes(health_server, self.config.reflection)?;
        let (authentication, release_leases) = wiring::wire(
            self.resources,
            &self.config,
            &rate_limits,
            &self.metrics,
            &lifecycle,
            &mut routes,
        );
        let plaintext = self.plaintext_listener.map(|listener| (listener, None));
        let encrypted = (self.listener, self.tls.map(Arc::new));
        let listeners = [encrypted].into_iter().chain(plaintext);
        let in_flight = CallsInFlight::default();
        let _health_task = self.health.map(|listener| {
            let health = listener.run(Arc::clone(&readiness), self.exposition);
            AbortOnDropHandle::new(tokio::spawn(health))
        });
        let reporter = health.clone();
        let until_shutdown = shutdown.clone();
        let report = AbortOnDropHandle::new(tokio::spawn(async move {
            let report = readiness.report(reporter);
            until_shutdown.run_until_cancelled(report).await;
        }));
        let observer = CallObserver {
            metrics: Arc::clone(&self.metrics.calls),
            in_flight: in_flight.clone(),
        };
        let shed = self.metrics.calls.shed.clone();
        let limits = CallLimits::new(rate_limits, shed.clone());
        // Not kept apart: the layers use the storage, which is closed once nothing uses it.
        let calls = ServiceBuilder::new()
            .layer(middleware(move |call, inner| {
                observer.clone().observe(call, inner)
            }))
            .layer(middleware(move |call, inner| {
                limits.clone().limit(call, inner)
            }))
            .layer(middleware(move |call, inner| {
                authentication.clone().authenticate(call, inner)
            }))
            .into_inner()
            .layer(routes.routes().prepare());
        if let Some(server) = &self.local_server {
            server.serve(calls.clone());
        }
        let service = move |call: Request<Incoming>, memory: RequestMemory| {
            let call = call.map(|body| count(body, memory));
            let response = calls.clone().oneshot(call);
            response.map(|Ok(response)| response)
        };
        let server = http_server(service, &shed);
        let _end_on_return = server.end_on_drop();
        let serve = async {
            join_all(listeners.map(|(listener, tls)| {
                server.accept(listener, tls, connections(&shed), shutdown.cancelled())
            }))
            .await;
            server.closing.cancel();
            server.drained_within(Duration::MAX).await;
        };
        let drain = async {
            shutdown.cancelled().await;
            // Otherwise a last report could replace the status.
            let _ = report.await;
            drain_calls(&health, &lifecycle, &in_flight).await;
        };
        tokio::select! {
            () = serve => {}
            () = drain => {}
        }

        // They use the storage.
        server.ended.cancel();
        server.drained_within(DRAIN_TIMEOUT).await;
        drop((server, self.local_server));
        lifecycle.shutdown.cancel();
        lifecycle.task_tracker.close();
        lifecycle.task_tracker.wait().await;
        lifecycle.streams_closed.cancel();
        let _ = release_leases.await;
        // Calls that outlast the drain still use the storage.
        if let Some(storage) = Arc::into_inner(storage) {
            storage.close().await?;
        }
        Ok(())
    }
}

/// The body of a call, counted against the memory of its peer.
fn count(body: Incoming, memory: RequestMemory) -> Body {
    let of_body = memory.clone();
    let grow = move |bytes| memory.grow(bytes);
    let received = move || of_body.set_received();
    Body::new(CountedBody::new(body, grow, received))
}

/// Waits for the calls in flight; idle connections do not delay shutdown.
async fn drain_calls(health: &HealthReporter, lifecycle: &Lifecycle, in_flight: &CallsInFlight) {
    health
        .set_service_status("", ServingStatus::NotServing)
        .await;
    // Dispatcher streams have no end; dispatchers reconnect to another core.
    lifecycle.shutdown.cancel();
    let drained = tokio::time::timeout(DRAIN_TIMEOUT, in_flight.drained());
    if drained.await.is_err() {
        tracing::warn!("calls still in flight after {DRAIN_TIMEOUT:?}");
    }
}

/// Whose memory a call takes.
type ByPeer = fn(&Request<Incoming>, IpAddr) -> IpAddr;

fn http_server<S>(service: S, shed: &Counters) -> Arc<Server<S, ByPeer>> {
    Arc::new(Server {
        http: Http {
            http1: None,
            max_header_list: MAX_HEADER_BYTES,
            max_streams: MAX_CALLS_PER_CONNECTION,
            ping_interval: PING_INTERVAL,
            request: REQUEST_BYTES,
        },
        timeouts: TIMEOUTS,
        memory: Pool::new(MEMORY, MEMORY / 2, shed.clone(), "memory"),
        service,
        client: |_, peer| peer_key(peer),
        closing: CancellationToken::new(),
        ended: CancellationToken::new(),
        tasks: TaskTracker::new(),
    })
}

/// Limits the connections of a listener.
fn connections(shed: &Counters) -> Arc<Pool<IpAddr>> {
    // The rest is for other peers, at once: what is evicted takes a while to end.
    let share = MAX_CONNECTIONS - MAX_CONNECTIONS / 8;
    Pool::new(MAX_CONNECTIONS, share, shed.clone(), "connections")
}

/// The metrics of a core, of what it uses, and of the platform.
fn expose(metrics: &Metrics, config: &Config, resources: &mut Resources) -> Exposition {
    let mut exposition = Exposition::new();
    let registry = exposition.registry();
    metrics.register(registry);
    tls::register_expiry(&[("grpc", config.tls.tls_certificate.as_ref())], registry);
    resources.storage.register_metrics(registry);
    upstream::register_metrics(std::mem::take(&mut resources.upstreams), registry);
    let platform = PlatformMetrics::new(&resources.storage, resources.clock.clone());
    platform.register(registry);
    exposition.refresh_with(move || platform.clone().refresh());
    exposition
}

/// The gRPC services that every server has.
fn routes(
    health_server: HealthServer<impl Health>,
    reflection: bool,
) -> Result<RoutesBuilder, StartError> {
    let mut routes = Routes::builder();
    routes.add_service(health_server);
    if reflection {
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .build_v1()?;
        routes.add_service(reflection);
    }
    Ok(routes)
}

/// A layer that calls a function for each request, with a clone of the inner service.
///
/// The layered service is always ready: the function waits for the inner one with `oneshot`.
pub(crate) fn middleware<S, F, Request, Response, Error, Fut>(
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
