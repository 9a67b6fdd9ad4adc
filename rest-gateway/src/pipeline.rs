//! The steps of a request: rate limit, route, check `If-Match`, check for a token, read the body,
//! concurrency limit, run the handler. `OPTIONS` is answered before them.

use std::{net::IpAddr, sync::Arc, time::Duration};

use admission::{Pool, RequestMemory};
use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, VARY},
    request::Parts,
};
use hyper::body::{Body as _, Incoming};
use process::metrics::{Registry, Sampled};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    api_description::{DOCUMENTATION, operations::Expects},
    body::{self, Limits},
    config::Config,
    error::Error,
    observer::{AccessLog, Metrics, Series},
    representation::{error_codes as codes, json_ld, media_type::MediaType, response_body},
    request::{self, Gateway, HandlerResult, Request},
    routes::{Handler, Route, RouteTable},
};

/// Memory for the bodies of all requests in flight, authenticated or not, and for unsent responses, in
/// bytes; more if it could not hold four of the largest bodies. A client has at most half of it.
const MEMORY: usize = 128 << 20;

/// The largest body with an image, in bytes: an image has at most 5 MB.
const MAX_IMAGE_BODY: usize = 6 << 20;

/// How long a body with an image may take to arrive: a phone sends 5 MB in 40 s at 1 Mbit/s.
const IMAGE_BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// Runs requests.
pub(crate) struct Pipeline {
    pub(crate) gateway: Arc<Gateway>,
    routes: RouteTable,
    pub(crate) limits: Limits,
    /// Of the bodies with an image.
    image_limits: Limits,
    queue: Queue,
    request_timeout: Duration,
    pub(crate) metrics: Metrics,
    pub(crate) access_log: AccessLog,
    /// The link that Hydra clients look for.
    pub(crate) documentation_link: HeaderValue,
}

impl Pipeline {
    pub(crate) fn new(gateway: Gateway, config: &Config) -> Self {
        let routes = RouteTable::new();
        let metrics = Metrics::new();
        let memory = MEMORY.max(config.max_body.saturating_mul(4));
        let link = format!(
            "<{}{DOCUMENTATION}>; rel=\"http://www.w3.org/ns/hydra/core#apiDocumentation\"",
            gateway.public_url
        );
        let memory = Pool::new(memory, memory / 2, metrics.shed.clone(), "memory");
        Self {
            gateway: Arc::new(gateway),
            access_log: config.access_log,
            routes,
            image_limits: Limits {
                size: config.max_body.max(MAX_IMAGE_BODY),
                timeout: config.read_timeout.max(IMAGE_BODY_TIMEOUT),
                memory: Arc::clone(&memory),
            },
            limits: Limits {
                size: config.max_body,
                timeout: config.read_timeout,
                memory,
            },
            queue: Queue::new(config),
            request_timeout: config.request_timeout,
            metrics,
            documentation_link: HeaderValue::from_str(&link).expect("a URL is ASCII"),
        }
    }

    pub(crate) fn register_metrics(&self, registry: &mut Registry) {
        self.metrics.register(registry);
        registry.register(
            "delivery_rest_requests_rate_limited",
            "Requests rejected by a rate limit",
            self.gateway.rate_limits.rejected.family.clone(),
        );
        let gateway = Arc::clone(&self.gateway);
        registry.register(
            "delivery_gateway_cores",
            "Cores known to the gateway, by state",
            Sampled::new(move || gateway.core.states()),
        );
    }

    pub(crate) fn series(&self, method: &Method, path: &str) -> Series {
        Series::new(method, self.routes.template(path))
    }

    /// Handles a request, unless it is rejected already.
    pub(crate) async fn handle(
        &self,
        request: http::Request<Incoming>,
        memory: RequestMemory,
        rejection: Option<Error>,
    ) -> Result<Response<Bytes>, Error> {
        let deadline = Instant::now() + self.request_timeout;
        let client = memory.client();
        let (parts, body) = request.into_parts();
        let discard = |body| body::discard(&parts.headers, body, client, &self.limits);
        if let Some(rejection) = rejection {
            discard(body);
            return Err(rejection);
        }
        if parts.method == Method::OPTIONS {
            discard(body);
            return self.respond_to_options(parts.uri.path());
        }
        let (route, parameter, media_type) = match self.accept(&parts, &body, client) {
            Ok(accepted) => accepted,
            Err(error) => {
                discard(body);
                return Err(error);
            }
        };
        let Route { operation, handler } = route;
        // The deadline of an upload begins after its body.
        let is_image = matches!(operation.expects, Expects::Image);
        let (limits, body_deadline) = if is_image {
            let limits = &self.image_limits;
            (limits, deadline + limits.timeout)
        } else {
            (&self.limits, deadline)
        };
        let (body, _memory) = if body.is_end_stream() {
            (Ok(Bytes::new()), None)
        } else {
            let read = body::read(&parts.headers, body, client, limits);
            let read = timeout_at(body_deadline, read).await;
            memory.set_received();
            read.map_err(|_| Error::deadline_exceeded())?
        };
        let deadline = if is_image {
            Instant::now() + self.request_timeout
        } else {
            deadline
        };
        let request = Request {
            gateway: Arc::clone(&self.gateway),
            client,
            memory,
            violations: request::unknown_parameters(operation, &parts.uri),
            parts,
            operation,
            body,
            json: Value::Null,
            idempotency: None,
            parameter,
            deadline,
        };
        let response = timeout_at(deadline, self.run(handler, request)).await;
        let response = response.unwrap_or_else(|_| Err(Error::deadline_exceeded()))?;
        let mut response = set_media_type(response, media_type);
        if operation.method == "GET" && operation.requires_token() {
            // Of the token's client alone. Not `no-store`: a client that polls gets 304.
            let value = HeaderValue::from_static("private, no-cache");
            response.headers_mut().entry(CACHE_CONTROL).or_insert(value);
        }
        Ok(response)
    }

    /// Runs the handler of a request when it is its turn.
    async fn run(&self, handler: Handler, mut request: Request) -> HandlerResult {
        let operation = request.operation;
        // Documents are exempt, and health checks, which must always respond.
        let _permit = if operation.is_exempt_from_limit() {
            None
        } else {
            let permit = self.queue.enter().await;
            Some(permit.ok_or_else(|| {
                self.metrics.shed.inc("concurrency");
                Error::overloaded()
            })?)
        };

        let is_iri = request.parameter.starts_with("/api/");
        let checked = request.read_json();
        // A read fails with unknown query parameters only if nothing else is wrong: 401 and 404 take
        // precedence.
        let query_check = if operation.method == "GET" {
            checked
        } else {
            Ok(checked?)
        };
        let response = handler(request).await.map_err(|error| {
            if is_iri && error.kind.status == StatusCode::NOT_FOUND {
                return Error::new(&codes::NOT_FOUND, "use the id alone, not the whole @id");
            }
            error
        })?;
        query_check?;
        Ok(response)
    }

    /// The route of a request, the parameter in its path and the negotiated media type, if the
    /// handler does not choose it. Fails for a request that is rejected without its body.
    fn accept(
        &self,
        request: &Parts,
        body: &Incoming,
        client: IpAddr,
    ) -> Result<(Route, String, Option<MediaType>), Error> {
        self.gateway.rate_limits.check(request, client)?;
        let (route, parameter) = self.routes.find(request)?;
        let operation = route.operation;
        let is_negotiated = operation.returns.is_negotiated();
        let media_type = is_negotiated.then(|| MediaType::of_resource(&request.headers));
        let media_type = media_type.transpose()?;
        response_body::check_if_match(&request.headers)?;
        // Rejects a malformed token, and a missing one before a body is read. Core checks the others.
        if operation.requires_token()
            && request::authorization(&request.headers)?.is_none()
            && !body.is_end_stream()
        {
            // Core's message for a missing token.
            return Err(Error::new(
                &codes::TOKEN_MISSING,
                "an access token is required: send Authorization: Bearer <access_token>",
            ));
        }
        Ok((route, parameter, media_type))
    }

    /// Lists a path's methods. Requires no token: CORS preflight requests have none.
    fn respond_to_options(&self, path: &str) -> Result<Response<Bytes>, Error> {
        let allow = self.routes.allowed_methods(path)?;
        let allow = HeaderValue::from_str(&allow).map_err(Error::internal)?;
        let mut response = json_ld::no_content();
        response.headers_mut().insert(ALLOW, allow);
        Ok(response)
    }
}

/// Sets the negotiated `Content-Type`, and the `Vary` that negotiation requires.
fn set_media_type(mut response: Response<Bytes>, media_type: Option<MediaType>) -> Response<Bytes> {
    if let Some(media_type) = media_type {
        let is_empty = response.body().is_empty();
        let headers = response.headers_mut();
        if !is_empty {
            headers.insert(CONTENT_TYPE, media_type.content_type());
        }
        headers.append(VARY, HeaderValue::from_static("accept"));
    }
    response
}

/// A concurrency limit with a queue. Excess requests wait in order, and not long: a client that is
/// rejected at once comes back at once, and under overload the rejections would take all of the
/// processor's time.
struct Queue {
    /// One permit per running request.
    running: Semaphore,
    /// One permit per request that waits.
    waiting: Semaphore,
    max_wait: Duration,
}

impl Queue {
    fn new(config: &Config) -> Self {
        let semaphore = |permits: usize| Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self {
            running: semaphore(config.max_requests),
            waiting: semaphore(config.max_connections),
            max_wait: config.max_wait,
        }
    }

    /// Waits until one more request may run; `None` if too many wait, or after the longest wait.
    async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(permit) = self.running.try_acquire() {
            return Some(permit);
        }
        let _waiting = self.waiting.try_acquire().ok()?;
        let permit = timeout(self.max_wait, self.running.acquire()).await;
        permit.ok()?.ok()
    }
}
