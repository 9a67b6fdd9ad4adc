//! The one list of what there is: method and path → resource.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::{
    HeaderValue, Method, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, VARY},
    request::Parts,
};
use http_body_util::Full;
use hyper::body::Incoming;
use matchit::Router;
use percent_encoding::percent_decode_str;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use crate::{
    body::{self, Limits},
    conditional,
    config::Config,
    core::Core,
    cors,
    error::Error,
    media_type::MediaType,
    platform::PlatformConfig,
    rate_limits::RateLimits,
    request::Request,
    resources::{
        contexts, deliveries, docs_page, entrypoint, error_pages, events, health, me,
        notifications, retail_prices, settings, stores, tasks, time_slots, tokens, webhook_tests,
        webhooks,
    },
};

/// How much of bodies is held at once, in KiB: whoever sends them, and before anybody is known.
const BUFFERED_KIB: usize = 64 * 1024;

/// What every resource works with.
pub(crate) struct Gateway {
    pub(crate) core: Core,
    /// Without a slash at its end.
    pub(crate) public_url: Arc<str>,
    pub(crate) platform_name: String,
    pub(crate) platform: PlatformConfig,
    pub(crate) rate_limits: RateLimits,
    /// Cancelled when the gateway has been told to end.
    pub(crate) draining: CancellationToken,
    /// What is at `/api/docs.json`.
    pub(crate) openapi: Bytes,
}

/// A resource's answer, or why there is none.
pub(crate) type Answer = Result<Response<Bytes>, Error>;

type Handler = fn(Arc<Gateway>, Request) -> BoxFuture<'static, Answer>;

struct Route {
    method: Method,
    path: &'static str,
    form: Form,
    handler: Handler,
}

/// Who says in what form a resource is.
#[derive(Clone, Copy)]
enum Form {
    /// `Accept` does: JSON-LD.
    JsonLd,
    /// The resource does.
    Own,
}

macro_rules! routes {
    ($($method:ident $path:literal $form:ident $handler:path;)*) => {
        static ROUTES: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            form: Form::$form,
            handler: |gateway, request| $handler(gateway, request).boxed(),
        }),*];
    };
}

routes! {
    POST   "/oauth2/token"                  Own     tokens::issue;
    GET    "/oauth2/jwks"                   Own     tokens::public_keys;

    GET    "/api"                           JsonLd  entrypoint::get;
    GET    "/api/contexts/{name}"           JsonLd  contexts::get;
    GET    "/api/docs.jsonld"               JsonLd  contexts::get_documentation;
    GET    "/api/docs.json"                 Own     contexts::get_openapi;
    GET    "/api/docs"                      Own     docs_page::get;
    GET    "/api/docs/{file}"               Own     docs_page::get_file;
    GET    "/api/settings"                  JsonLd  settings::get;
    GET    "/api/deliveries"                JsonLd  deliveries::list;
    POST   "/api/deliveries"                JsonLd  deliveries::create;
    POST   "/api/deliveries/assert"         JsonLd  deliveries::assert;
    GET    "/api/deliveries/{id}"           JsonLd  deliveries::get;
    DELETE "/api/deliveries/{id}"           JsonLd  deliveries::cancel;
    GET    "/api/tasks/{id}"                JsonLd  tasks::get;
    PUT    "/api/tasks/{id}/done"           JsonLd  tasks::complete;
    POST   "/api/retail_prices/calculate"   JsonLd  retail_prices::calculate;
    GET    "/api/retail_prices/{token}"     JsonLd  retail_prices::get;
    GET    "/api/time_slots/choices"        JsonLd  time_slots::list_default_choices;
    GET    "/api/time_slots/{id}"           JsonLd  time_slots::get;
    GET    "/api/time_slots/{id}/choices"   JsonLd  time_slots::list_choices;
    GET    "/api/me"                        JsonLd  me::get;
    GET    "/api/stores/{id}"               JsonLd  stores::get;
    GET    "/api/webhooks"                  JsonLd  webhooks::list;
    POST   "/api/webhooks"                  JsonLd  webhooks::create;
    GET    "/api/webhooks/{id}"             JsonLd  webhooks::get;
    DELETE "/api/webhooks/{id}"             JsonLd  webhooks::delete;
    POST   "/api/webhooks/{id}/enable"      JsonLd  webhooks::enable;
    POST   "/api/webhooks/{id}/disable"     JsonLd  webhooks::disable;
    POST   "/api/webhooks/{id}/rotate_secret" JsonLd webhooks::rotate_secret;
    POST   "/api/webhooks/{id}/confirm_secret" JsonLd webhooks::confirm_secret;
    POST   "/api/webhooks/{id}/test"        JsonLd  webhook_tests::run;
    POST   "/api/webhooks/{id}/recover"     JsonLd  notifications::recover;
    GET    "/api/webhooks/{id}/notifications" JsonLd notifications::list;
    GET    "/api/notifications/{id}"        JsonLd  notifications::get;
    POST   "/api/notifications/{id}/resend" JsonLd  notifications::resend;

    GET    "/api/events"                    JsonLd  events::list;
    GET    "/api/events/{id}"               JsonLd  events::get;

    GET    "/errors/{code}"                 Own     error_pages::get;
    GET    "/healthz"                       Own     health::live;
    GET    "/readyz"                        Own     health::ready;
}

/// Finds a request's resource and lets it answer.
#[derive(Clone)]
pub(crate) struct Routes(Arc<Inner>);

struct Inner {
    gateway: Arc<Gateway>,
    /// Path → the routes with it, one per method.
    router: Router<Vec<&'static Route>>,
    limits: Limits,
    /// A permit for each request that is worked on.
    workers: Semaphore,
    request_timeout: Duration,
}

impl Routes {
    pub(crate) fn new(gateway: Gateway, config: &Config) -> Self {
        Self(Arc::new(Inner {
            gateway: Arc::new(gateway),
            router: router(),
            limits: Limits {
                size: config.max_body,
                time: config.read_timeout,
                memory: Arc::new(Semaphore::new(BUFFERED_KIB)),
            },
            workers: Semaphore::new(config.max_requests.min(Semaphore::MAX_PERMITS)),
            request_timeout: config.request_timeout,
        }))
    }

    pub(crate) fn public_url(&self) -> Arc<str> {
        Arc::clone(&self.0.gateway.public_url)
    }
}

fn router() -> Router<Vec<&'static Route>> {
    let mut by_path: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for route in ROUTES {
        by_path.entry(route.path).or_default().push(route);
    }
    let mut router = Router::new();
    for (path, routes) in by_path {
        router
            .insert(path, routes)
            .expect("the list is constant, and a test inserts it");
    }
    router
}

impl Service<http::Request<Incoming>> for Routes {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Full<Bytes>>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Incoming>) -> Self::Future {
        let routes = Arc::clone(&self.0);
        Box::pin(async move { Ok(routes.answer(request).await?) })
    }
}

/// Where a request goes.
struct Found {
    route: &'static Route,
    parameter: String,
    media_type: Option<MediaType>,
}

impl Inner {
    async fn answer(
        &self,
        request: http::Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Error> {
        let deadline = Instant::now() + self.request_timeout;
        let (parts, body) = request.into_parts();
        if parts.method == Method::OPTIONS {
            body::discard(body, &self.limits).await;
            return self.options(&parts);
        }
        // Read even if it is not wanted: see `body`.
        let rate_limits = &self.gateway.rate_limits;
        let found = match rate_limits.check(&parts).and_then(|()| self.find(&parts)) {
            Ok(found) => found,
            Err(error) => {
                body::discard(body, &self.limits).await;
                return Err(error);
            }
        };
        let Found {
            route,
            parameter,
            media_type,
        } = found;
        let (body, _memory) = body::read(&parts.headers, body, &self.limits).await;
        // No queue without bound: what can't be worked on now is refused at once. Whether the
        // process lives is always said.
        let _worker = match route.form {
            Form::JsonLd => Some(self.worker()?),
            Form::Own => None,
        };

        let asked = (route.method == Method::GET).then(|| parts.headers.clone());
        let request = Request {
            parts,
            body,
            parameter,
            deadline,
            known_clients: rate_limits.known_clients().clone(),
        };
        let answer = (route.handler)(Arc::clone(&self.gateway), request).await?;

        let answer = label(answer, media_type);
        let answer = match asked {
            Some(asked) => conditional::tag(&asked, answer),
            None => answer,
        };
        Ok(answer.map(Full::new))
    }

    /// What can be asked of a path, for everybody: browsers ask it before a page may ask more.
    fn options(&self, request: &Parts) -> Result<Response<Full<Bytes>>, Error> {
        let path = request.uri.path();
        let found = self.router.at(path).map_err(|_| Error::no_such_path())?;
        let allow = HeaderValue::from_str(&allow(found.value))
            .map_err(|error| Error::Internal(error.into()))?;

        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let headers = answer.headers_mut();
        if cors::is_preflight(&request.headers) {
            cors::preflight(path, &allow, headers);
        }
        headers.insert(ALLOW, allow);
        Ok(answer)
    }

    fn worker(&self) -> Result<SemaphorePermit<'_>, Error> {
        self.workers.try_acquire().map_err(|_| Error::overloaded())
    }

    fn find(&self, request: &Parts) -> Result<Found, Error> {
        let path = request.uri.path();
        let found = self.router.at(path).map_err(|_| Error::no_such_path())?;
        let parameter = match found.params.iter().next() {
            Some((_, raw)) => decode(raw).ok_or_else(Error::no_such_path)?,
            None => String::new(),
        };
        let method = match request.method {
            Method::HEAD => &Method::GET,
            ref other => other,
        };
        let Some(route) = found.value.iter().find(|route| route.method == *method) else {
            return Err(Error::MethodNotAllowed {
                allow: allow(found.value),
            });
        };
        let media_type = match route.form {
            Form::JsonLd => Some(MediaType::of_resource(&request.headers)?),
            Form::Own => None,
        };
        Ok(Found {
            route,
            parameter,
            media_type,
        })
    }
}

/// Decodes `%XX`; none if that is not text, or a `%` is not followed by two digits.
fn decode(raw: &str) -> Option<String> {
    let whole = raw
        .split('%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()));
    if !whole {
        return None;
    }
    let decoded = percent_decode_str(raw).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

fn allow(routes: &[&Route]) -> String {
    let mut methods = Vec::new();
    for route in routes {
        methods.push(route.method.as_str());
        if route.method == Method::GET {
            methods.push("HEAD");
        }
    }
    methods.push("OPTIONS");
    methods.join(", ")
}

/// Says in what form the body is.
fn label(mut answer: Response<Bytes>, media_type: Option<MediaType>) -> Response<Bytes> {
    if let Some(media_type) = media_type {
        let is_empty = answer.body().is_empty();
        let headers = answer.headers_mut();
        if !is_empty {
            headers.insert(CONTENT_TYPE, media_type.label());
        }
        headers.append(VARY, HeaderValue::from_static("accept"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use percent_encoding::NON_ALPHANUMERIC;
    use proptest::prelude::*;

    use super::*;
    use crate::vocabulary;

    #[test]
    fn every_route_of_the_list_is_found_by_its_method_and_path() {
        let router = router();

        for route in ROUTES {
            let found = router.at(route.path).unwrap();
            let same: Vec<_> = found
                .value
                .iter()
                .filter(|other| other.method == route.method)
                .collect();
            assert_eq!(same.len(), 1, "{} {}", route.method, route.path);
            assert_eq!(same[0].path, route.path);
        }
    }

    #[test]
    fn every_route_of_the_list_is_documented_and_no_other() {
        let routes: BTreeSet<_> = ROUTES
            .iter()
            .map(|route| (route.method.as_str(), route.path))
            .collect();
        let documented: BTreeSet<_> = vocabulary::method_and_path().collect();

        assert_eq!(documented, routes);
    }

    #[test]
    fn hydra_s_clients_are_told_of_every_resource_and_no_other() {
        const THE_DOCUMENTATION: [&str; 3] = ["/api", "/api/contexts/{name}", "/api/docs.jsonld"];

        let routes: BTreeSet<_> = ROUTES
            .iter()
            .filter(|route| matches!(route.form, Form::JsonLd))
            .filter(|route| !THE_DOCUMENTATION.contains(&route.path))
            .map(|route| (route.method.as_str(), route.path))
            .collect();
        let documented: BTreeSet<_> = vocabulary::hydra_method_and_path().collect();

        assert_eq!(documented, routes);
    }

    #[test]
    fn a_parameter_is_decoded_whole_or_not_at_all() {
        assert_eq!(decode("a%2Fb%c3%A9").as_deref(), Some("a/bé"));
        for wrong in ["%", "a%2", "%zz", "%c3", "%+1", "%é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(text in any::<String>()) {
            let encoded = percent_encoding::utf8_percent_encode(&text, NON_ALPHANUMERIC);

            prop_assert_eq!(decode(&encoded.to_string()), Some(text));
        }

        #[test]
        fn no_path_makes_the_router_panic(path in "(/[a-z_{}%0-9.]{0,12}){0,5}") {
            let _ = router().at(&path);
            let _ = decode(&path);
        }
    }
}
