//! The route table: method and path → handler.

use std::collections::BTreeMap;

use futures_util::future::{BoxFuture, FutureExt};
use http::{HeaderMap, Method, Uri, request::Parts};
use matchit::Router;
use percent_encoding::percent_decode_str;

use crate::{
    api_description,
    body_reader::ViolationCollector,
    error::{Details, Error},
    error_codes as codes,
    gateway::HandlerResult,
    media_type::MediaType,
    metrics::PathNumber,
    query,
    request::Request,
    resources::{
        deliveries, demo, docs_page, error_pages, events, health, me, retail_prices,
        self_description, settings, stores, tasks, time_slots, tokens,
        webhooks::{self, notifications, test_send},
    },
};

type Handler = fn(Request) -> BoxFuture<'static, HandlerResult>;

/// An entry of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    path: &'static str,
    pub(crate) negotiation: Negotiation,
    pub(crate) handler: Handler,
}

impl Route {
    pub(crate) fn requires_token(&self) -> bool {
        api_description::requires_token(self.method.as_str(), self.path)
    }
}

/// How the media type of a response is chosen.
#[derive(Clone, Copy)]
pub(crate) enum Negotiation {
    /// By `Accept`: JSON-LD or plain JSON.
    JsonLd,
    /// Not at all: a successful response has no body.
    NoContent,
    /// By the handler.
    Fixed,
}

macro_rules! routes {
    ($table:ident $($method:ident $path:literal $negotiation:ident $handler:path;)*) => {
        static $table: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            negotiation: Negotiation::$negotiation,
            handler: |request| $handler(request).boxed(),
        }),*];
    };
}

routes! { ROUTES
    POST   "/oauth2/token"                  Fixed   tokens::issue;
    GET    "/oauth2/jwks"                   Fixed   tokens::public_keys;
    GET    "/.well-known/oauth-authorization-server" Fixed tokens::get_metadata;

    GET    "/api"                           JsonLd  self_description::get_entrypoint;
    GET    "/api/contexts/{name}"           JsonLd  self_description::get_context;
    GET    "/api/docs.jsonld"               JsonLd  self_description::get_hydra;
    GET    "/api/docs.json"                 Fixed   self_description::get_openapi;
    GET    "/api/docs"                      Fixed   docs_page::get;
    GET    "/api/docs/{asset}"              Fixed   docs_page::get_file;
    GET    "/api/settings"                  JsonLd  settings::get;
    GET    "/api/deliveries"                JsonLd  deliveries::list;
    POST   "/api/deliveries"                JsonLd  deliveries::create;
    POST   "/api/deliveries/assert"         JsonLd  deliveries::assert;
    GET    "/api/deliveries/{id}"           JsonLd  deliveries::get;
    DELETE "/api/deliveries/{id}"           NoContent deliveries::cancel;
    GET    "/api/tasks/{id}"                JsonLd  tasks::get;
    PUT    "/api/tasks/{id}/done"           JsonLd  tasks::complete;
    POST   "/api/retail_prices/calculate"   JsonLd  retail_prices::calculate;
    GET    "/api/retail_prices/{token}"     JsonLd  retail_prices::get;
    GET    "/api/time_slots/choices"        JsonLd  time_slots::list_default_choices;
    GET    "/api/time_slots/{id}"           JsonLd  time_slots::get;
    GET    "/api/time_slots/{id}/choices"   JsonLd  time_slots::list_choices;
    GET    "/api/me"                        JsonLd  me::get;
    GET    "/api/api_apps/{id}"             JsonLd  me::get_by_id;
    GET    "/api/stores/{id}"               JsonLd  stores::get;
    GET    "/api/webhooks"                  JsonLd  webhooks::list;
    POST   "/api/webhooks"                  JsonLd  webhooks::create;
    GET    "/api/webhooks/{id}"             JsonLd  webhooks::get;
    DELETE "/api/webhooks/{id}"             NoContent webhooks::delete;
    POST   "/api/webhooks/{id}/enable"      JsonLd  webhooks::enable;
    POST   "/api/webhooks/{id}/disable"     JsonLd  webhooks::disable;
    POST   "/api/webhooks/{id}/rotate_secret" JsonLd webhooks::rotate_secret;
    POST   "/api/webhooks/{id}/confirm_secret" JsonLd webhooks::confirm_secret;
    POST   "/api/webhooks/{id}/test"        JsonLd  test_send::send;
    POST   "/api/webhooks/{id}/recover"     JsonLd  notifications::recover;
    GET    "/api/webhooks/{id}/notifications" JsonLd notifications::list;
    GET    "/api/notifications/{id}"        JsonLd  notifications::get;
    POST   "/api/notifications/{id}/resend" JsonLd  notifications::resend;

    GET    "/api/events"                    JsonLd  events::list;
    GET    "/api/events/{id}"               JsonLd  events::get;

    GET    "/errors"                        Fixed   error_pages::list;
    GET    "/errors/{code}"                 Fixed   error_pages::get;
    GET    "/healthz"                       Fixed   health::live;
    GET    "/readyz"                        Fixed   health::ready;
}

routes! { DEMO_ROUTES
    POST   "/api/demo/deliveries/{id}/complete" JsonLd demo::complete;
}

/// Finds the route of a request.
pub(crate) struct RouteTable {
    /// Path → its routes, one per method.
    router: Router<PathRoutes>,
    /// In the order of their numbers, which begin with 1.
    paths: Vec<&'static str>,
}

/// The routes of a path.
struct PathRoutes {
    number: PathNumber,
    path: &'static str,
    routes: Vec<&'static Route>,
}

/// A route that matches a request.
pub(crate) struct RouteMatch {
    pub(crate) route: &'static Route,
    /// The decoded value of `{…}` in the path; empty if the path has none.
    pub(crate) parameter: String,
    /// The negotiated media type; none if the handler chooses it.
    pub(crate) media_type: Option<MediaType>,
    pub(crate) query_violations: ViolationCollector,
}

impl RouteTable {
    pub(crate) fn new(is_demo: bool) -> Self {
        let demo_routes = if is_demo { DEMO_ROUTES } else { &[] };
        let mut by_path: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for route in ROUTES.iter().chain(demo_routes) {
            by_path.entry(route.path).or_default().push(route);
        }
        let mut router = Router::new();
        let mut paths = Vec::new();
        for (path, routes) in by_path {
            paths.push(path);
            let number = paths.len();
            let at_path = PathRoutes {
                number,
                path,
                routes,
            };
            router
                .insert(path, at_path)
                .expect("the table is constant, and a test inserts every path");
        }
        Self { router, paths }
    }

    /// The templates of all paths, in the order of their numbers.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.paths.iter().copied()
    }

    /// The number and the template of a request's path, if it has a route.
    pub(crate) fn number(&self, path: &str) -> Option<(PathNumber, &'static str)> {
        let found = self.router.at(path).ok()?;
        Some((found.value.number, found.value.path))
    }

    /// Fails with 404 for an unknown path, 405 for an unknown method and 406 for media types
    /// that are not offered.
    pub(crate) fn find(&self, request: &Parts) -> Result<RouteMatch, Error> {
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
        let routes = &found.value.routes;
        let Some(route) = routes.iter().find(|route| route.method == *method) else {
            let allow = allow_header(routes);
            let message = format!("the method must be one of {allow}");
            return Err(Error::new(&codes::METHOD_NOT_ALLOWED, message).with(Details::Allow(allow)));
        };
        Ok(RouteMatch {
            route,
            parameter,
            media_type: negotiate(route, &request.headers)?,
            query_violations: query_violations(route, &request.uri),
        })
    }

    /// The value of `Allow` for a path.
    pub(crate) fn allowed_methods(&self, path: &str) -> Result<String, Error> {
        let found = self.router.at(path).map_err(|_| Error::no_such_path())?;
        Ok(allow_header(&found.value.routes))
    }
}

fn negotiate(route: &Route, headers: &HeaderMap) -> Result<Option<MediaType>, Error> {
    match route.negotiation {
        Negotiation::JsonLd => MediaType::of_resource(headers).map(Some),
        Negotiation::NoContent | Negotiation::Fixed => Ok(None),
    }
}

/// The unknown query parameters of a request for a resource. Documents and health checks ignore
/// them, and so does the token endpoint (RFC 6749 §3.2).
fn query_violations(route: &Route, uri: &Uri) -> ViolationCollector {
    match (route.negotiation, uri.query()) {
        (Negotiation::Fixed, _) | (_, None) => ViolationCollector::default(),
        (_, Some(query)) => {
            let known = api_description::query_parameters(route.method.as_str(), route.path);
            query::unknown_parameters(query, &known)
        }
    }
}

/// Decodes `%XX`; none if a `%` is not followed by two digits, or the result is not UTF-8.
fn decode(raw: &str) -> Option<String> {
    let is_well_formed = raw
        .split('%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()));
    if !is_well_formed {
        return None;
    }
    let decoded = percent_decode_str(raw).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

fn allow_header(routes: &[&Route]) -> String {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use percent_encoding::NON_ALPHANUMERIC;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_route_is_found_by_its_method_and_path() {
        let table = RouteTable::new(true);

        for route in ROUTES.iter().chain(DEMO_ROUTES) {
            let found = table.router.at(route.path).unwrap();
            let matching: Vec<_> = found
                .value
                .routes
                .iter()
                .filter(|other| other.method == route.method)
                .collect();
            assert_eq!(matching.len(), 1, "{} {}", route.method, route.path);
            assert_eq!(matching[0].path, route.path);
        }
    }

    #[test]
    fn every_route_is_documented_and_no_other() {
        let routes: BTreeSet<_> = ROUTES
            .iter()
            .map(|route| (route.method.as_str(), route.path))
            .collect();
        let documented: BTreeSet<_> = api_description::methods_and_paths().collect();

        assert_eq!(documented, routes);
    }

    #[test]
    fn the_hydra_documentation_lists_every_resource_and_no_other() {
        const DOCUMENTATION_PATHS: [&str; 3] = ["/api", "/api/contexts/{name}", "/api/docs.jsonld"];

        let routes: BTreeSet<_> = ROUTES
            .iter()
            .filter(|route| !matches!(route.negotiation, Negotiation::Fixed))
            .filter(|route| !DOCUMENTATION_PATHS.contains(&route.path))
            .map(|route| (route.method.as_str(), route.path))
            .collect();
        let documented: BTreeSet<_> = api_description::hydra_methods_and_paths().collect();

        assert_eq!(documented, routes);
    }

    #[test]
    fn a_parameter_is_decoded_completely_or_rejected() {
        assert_eq!(decode("a%2Fb%c3%A9").as_deref(), Some("a/bé"));
        for wrong in ["%", "a%2", "%zz", "%c3", "%+1", "%é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn an_encoded_text_is_decoded(text in any::<String>()) {
            let encoded = percent_encoding::utf8_percent_encode(&text, NON_ALPHANUMERIC);

            prop_assert_eq!(decode(&encoded.to_string()), Some(text));
        }

        #[test]
        fn no_path_makes_the_router_panic(path in "(/[a-z_{}%0-9.]{0,12}){0,5}") {
            let _ = RouteTable::new(true).router.at(&path);
            let _ = decode(&path);
        }
    }
}
