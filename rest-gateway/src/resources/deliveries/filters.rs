//! The query parameters of the list of deliveries: filters and pagination. The names are
//! those of API Platform's filters, which existing clients send.

use proto::{ListDeliveriesRequest, task::Status};
use url::form_urlencoded;

use crate::{
    collection::{ORDER, PAGE, read_page_size, read_single},
    request::Request,
};

const CURSOR: &str = "cursor";

/// Reads the query and collects violations.
pub(super) fn read(request: &mut Request) -> ListDeliveriesRequest {
    let page_size = read_page_size(request);
    let mut read_parameter = |field, parameter| read_single(request, (field, parameter));
    let cursor = read_parameter("page_token", CURSOR);
    let external_reference = read_parameter("external_reference", "externalReference");
    let created_from = read_parameter("created_from", "createdAt[after]");
    let created_until = read_parameter("created_until", "createdAt[before]");
    let dropoff_from = read_parameter("dropoff_from", "dropoff.before[after]");
    let dropoff_until = read_parameter("dropoff_until", "dropoff.before[before]");
    let status = read_parameter("status", "status");
    let cancelled = read_parameter("cancelled", "exists[cancelledAt]");

    let status = status.and_then(|text| {
        let status = match text.as_str() {
            "TODO" => Some(Status::Todo.into()),
            "DONE" => Some(Status::Done.into()),
            _ => None,
        };
        check(request, status, "status", "must be TODO or DONE")
    });
    let cancelled = cancelled.and_then(|text| {
        let cancelled = match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        check(request, cancelled, "cancelled", "must be true or false")
    });
    let external_reference = external_reference.and_then(|text| {
        let text = Some(text).filter(|text| !text.is_empty());
        check(request, text, "external_reference", "must not be empty")
    });
    ListDeliveriesRequest {
        page_size,
        page_token: cursor.unwrap_or_default(),
        external_reference,
        created_from,
        created_until,
        dropoff_from,
        dropoff_until,
        status,
        cancelled,
        violations: request.violations.to_proto(),
    }
}

/// The query without its cursor, for links to other pages.
pub(super) fn without_cursor(request: &Request) -> String {
    let query = request.parts.uri.query().unwrap_or_default();
    let others = form_urlencoded::parse(query.as_bytes())
        .filter(|(name, _)| ![CURSOR, PAGE, ORDER].contains(&&**name));
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(others)
        .finish()
}

/// Adds a violation if the value is none.
fn check<T>(request: &mut Request, value: Option<T>, field: &str, requirement: &str) -> Option<T> {
    if value.is_none() {
        request.violations.add(field, "WRONG_TYPE", requirement);
    }
    value
}
