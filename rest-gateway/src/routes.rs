//! Finds the operation of a request, and its handler, by method and path.

use std::collections::BTreeMap;

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, ready},
};
use http::{Method, request::Parts};
use matchit::{Match, Router};
use percent_encoding::percent_decode_str;

use crate::{
    api_description::operations::{self, Operation},
    error::{Details, Error},
    representation::error_codes as codes,
    request::{HandlerResult, Request},
    resources::{
        deliveries, docs_page, error_pages, events, failure_reasons, health, images, incidents, me,
        retail_prices, self_description, stores, task_assignment, task_commands, task_events,
        task_incidents, tasks, time_slots, tokens, tracking,
        webhooks::{self, notifications},
    },
};

pub(crate) type Handler = fn(Request) -> BoxFuture<'static, HandlerResult>;

/// Keeps a row on one line.
macro_rules! handlers {
    ($($operation_id:literal => $handler:expr,)*) => {
        &[$(($operation_id, $handler)),*]
    };
}

/// The handlers, in the order of the operations.
static HANDLERS: &[(&str, Handler)] = handlers! {
    "issueToken" => |request| tokens::issue(request).boxed(),
    "getAuthorizationServerMetadata" => |request| ready(tokens::get_metadata(&request)).boxed(),
    "listPublicKeys" => |request| tokens::public_keys::get(request).boxed(),
    "createDelivery" => |request| deliveries::create(request).boxed(),
    "listDeliveries" => |request| deliveries::list(request).boxed(),
    "assertDelivery" => |request| deliveries::assert(request).boxed(),
    "getDelivery" => |request| deliveries::get(request).boxed(),
    "cancelDelivery" => |request| deliveries::cancel(request).boxed(),
    "getTask" => |request| tasks::get(request).boxed(),
    "listTaskEvents" => |request| task_events::list(request).boxed(),
    "listTaskIncidents" => |request| task_incidents::list(request).boxed(),
    "listFailureReasons" => |request| failure_reasons::list(request).boxed(),
    "reportIncident" => |request| incidents::report(request).boxed(),
    "uploadTaskImage" => |request| images::upload_of_tasks(request).boxed(),
    "uploadIncidentImage" => |request| images::upload_of_incidents(request).boxed(),
    "getImage" => |request| images::get(request).boxed(),
    "startTask" => |request| task_commands::start(request).boxed(),
    "completeTask" => |request| task_commands::complete(request).boxed(),
    "completeTasks" => |request| task_commands::complete_several(request).boxed(),
    "failTask" => |request| task_commands::fail(request).boxed(),
    "rescheduleTask" => |request| task_commands::reschedule(request).boxed(),
    "reopenTask" => |request| task_commands::reopen(request).boxed(),
    "updateTask" => |request| task_commands::update(request).boxed(),
    "assignTask" => |request| task_assignment::assign(request).boxed(),
    "unassignTask" => |request| task_assignment::unassign(request).boxed(),
    "calculateRetailPrice" => |request| retail_prices::calculate(request).boxed(),
    "getRetailPrice" => |request| retail_prices::get(request).boxed(),
    "listDefaultTimeSlotChoices" => |request| time_slots::list_default_choices(request).boxed(),
    "listTimeSlotChoices" => |request| time_slots::list_choices(request).boxed(),
    "getTimeSlot" => |request| time_slots::get(request).boxed(),
    "createWebhook" => |request| webhooks::create(request).boxed(),
    "listWebhooks" => |request| webhooks::list(request).boxed(),
    "getWebhook" => |request| webhooks::get(request).boxed(),
    "deleteWebhook" => |request| webhooks::delete(request).boxed(),
    "enableWebhook" => |request| webhooks::enable(request).boxed(),
    "disableWebhook" => |request| webhooks::disable(request).boxed(),
    "rotateWebhookSecret" => |request| webhooks::rotate_secret(request).boxed(),
    "confirmWebhookSecret" => |request| webhooks::confirm_secret(request).boxed(),
    "listNotifications" => |request| notifications::list(request).boxed(),
    "recoverWebhook" => |request| notifications::recover(request).boxed(),
    "testWebhook" => |request| webhooks::test(request).boxed(),
    "getNotification" => |request| notifications::get(request).boxed(),
    "resendNotification" => |request| notifications::resend(request).boxed(),
    "listEvents" => |request| events::list(request).boxed(),
    "getEvent" => |request| events::get(request).boxed(),
    "getMe" => |request| me::get(request).boxed(),
    "getApiApp" => |request| me::get_by_id(request).boxed(),
    "getStore" => |request| stores::get(request).boxed(),
    "getSettings" => |request| ready(self_description::get_settings(&request)).boxed(),
    "getTrackingPage" => |request| tracking::get(request).boxed(),
    "getTrackingPageLogo" => |request| tracking::get_logo(request).boxed(),
    "getTrackingPageFile" => |request| ready(tracking::get_file(&request)).boxed(),
    "getEntrypoint" => |_| ready(self_description::get_entrypoint()).boxed(),
    "getContext" => |request| ready(self_description::get_context(&request)).boxed(),
    "getHydraDocumentation" => |request| ready(Ok(self_description::get_hydra(&request))).boxed(),
    "getOpenApi" => |request| ready(Ok(self_description::get_openapi(&request))).boxed(),
    "getDocsPage" => |request| ready(Ok(docs_page::get(&request))).boxed(),
    "getDocsPageFile" => |request| ready(docs_page::get_file(&request)).boxed(),
    "getRoot" => |_| ready(Ok(docs_page::get_root())).boxed(),
    "listErrors" => |request| ready(Ok(error_pages::list(&request))).boxed(),
    "explainError" => |request| ready(error_pages::get(&request)).boxed(),
    "isLive" => |_| ready(Ok(health::live())).boxed(),
    "isReady" => |request| health::ready(request).boxed(),
};

/// What a client that tries to change a resource does instead, by the resource's path.
fn instead_of_a_change(path: &str) -> &'static str {
    match path {
        "/api/deliveries/{id}" => {
            "; a delivery is not changed: cancel it by DELETE, and create another"
        }
        "/api/tasks/{id}" => {
            "; a task is corrected by PATCH, and changed by PUT below it, such as /api/tasks/{id}/done"
        }
        "/api/webhooks/{id}" => "; a webhook is not changed: create another, and delete this one",
        _ => "",
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Route {
    pub(crate) operation: &'static Operation,
    pub(crate) handler: Handler,
}

pub(crate) struct RouteTable {
    router: Router<PathRoutes>,
}

/// A path with its routes, one per method.
struct PathRoutes {
    template: &'static str,
    routes: Vec<Route>,
}

impl RouteTable {
    pub(crate) fn new() -> Self {
        let mut by_path: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for operation in operations::all() {
            let mut handlers = HANDLERS.iter();
            let found = handlers.find(|(id, _)| *id == operation.operation_id);
            let (_, handler) = *found.expect("a test finds exactly one handler for each operation");
            let routes = by_path.entry(operation.path.as_str()).or_default();
            routes.push(Route { operation, handler });
        }
        let mut router = Router::new();
        for (template, mut routes) in by_path {
            // `Allow` lists `GET` first.
            routes.sort_by_key(|route| route.operation.method != "GET");
            let path = PathRoutes { template, routes };
            router
                .insert(template, path)
                .expect("the table is constant, and a test inserts every path");
        }
        Self { router }
    }

    /// The template of a request's path, if it has a route.
    pub(crate) fn template(&self, path: &str) -> Option<&'static str> {
        let found = self.router.at(path).ok()?;
        Some(found.value.template)
    }

    /// The route of a request, and the decoded value of `{…}` in its path, empty if the path has
    /// none. Fails with 404 for an unknown path and 405 for an unknown method.
    pub(crate) fn find(&self, request: &Parts) -> Result<(Route, String), Error> {
        let found = self.at(request.uri.path())?;
        let parameter = match found.params.iter().next() {
            Some((_, raw)) => decode(raw).ok_or_else(Error::no_such_path)?,
            None => String::new(),
        };
        let method = match request.method {
            Method::HEAD => "GET",
            ref other => other.as_str(),
        };
        let mut routes = found.value.routes.iter();
        let Some(route) = routes.find(|route| route.operation.method == method) else {
            let allow = allow_header(&found.value.routes);
            let instead = match request.method {
                Method::DELETE => "",
                _ => instead_of_a_change(found.value.template),
            };
            let message = format!("the method must be one of {allow}{instead}");
            return Err(Error::new(&codes::METHOD_NOT_ALLOWED, message).with(Details::Allow(allow)));
        };
        Ok((*route, parameter))
    }

    pub(crate) fn allowed_methods(&self, path: &str) -> Result<String, Error> {
        Ok(allow_header(&self.at(path)?.value.routes))
    }

    /// The routes of a path. Fails with 404 for an unknown one, which names the path without a slash
    /// at its end if that is known.
    fn at<'r>(&'r self, path: &'r str) -> Result<Match<'r, 'r, &'r PathRoutes>, Error> {
        self.router.at(path).map_err(|_| {
            let shorter = path.trim_end_matches('/');
            let is_known = shorter != path && self.router.at(shorter).is_ok();
            if is_known {
                let hint = format!("there is no such path; did you mean {shorter}?");
                Error::new(&codes::NOT_FOUND, hint)
            } else {
                Error::no_such_path()
            }
        })
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

/// The value of `Allow` for a path with these routes.
fn allow_header(routes: &[Route]) -> String {
    let methods = routes.iter().map(|route| &*route.operation.method);
    let all: Vec<_> = methods.chain(["OPTIONS"]).collect();
    all.join(", ").replace("GET", "GET, HEAD")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use percent_encoding::NON_ALPHANUMERIC;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_operation_has_exactly_one_handler() {
        let operations = operations::all();
        let ids: Vec<_> = operations
            .map(|operation| operation.operation_id.as_str())
            .collect();
        let handled: Vec<_> = HANDLERS.iter().map(|(id, _)| *id).collect();

        assert_eq!(handled, ids);
        let distinct: BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
    }

    #[test]
    fn every_operation_is_found_by_its_method_and_path() {
        let table = RouteTable::new();

        for operation in operations::all() {
            let found = table.router.at(&operation.path).unwrap();
            let matching: Vec<_> = found
                .value
                .routes
                .iter()
                .map(|route| route.operation)
                .filter(|other| other.method == operation.method)
                .collect();
            assert_eq!(matching.len(), 1, "{} {}", operation.method, operation.path);
            assert_eq!(matching[0].path, operation.path);
        }
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
            let _ = RouteTable::new().router.at(&path);
            let _ = decode(&path);
        }
    }

    #[test]
    fn a_path_has_the_template_of_its_operation() {
        let table = RouteTable::new();

        for operation in operations::all() {
            let path = operation.path.replace(['{', '}'], "");
            assert_eq!(table.template(&path), Some(operation.path.as_str()));
        }
        assert_eq!(table.template("/api/unknown"), None);
    }
}
