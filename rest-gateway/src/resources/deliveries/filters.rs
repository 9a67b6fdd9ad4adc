//! The query parameters of the list of deliveries: filters and pagination. The names are
//! those of API Platform's filters, which existing clients send.

use proto::{ListDeliveriesRequest, task::Status};
use url::form_urlencoded;

use crate::{
    representation::collection::{ORDER, PAGE, read_page_size, read_parsed, read_single},
    request::Request,
};

const CURSOR: &str = "cursor";

/// Reads the query and collects violations.
pub(super) fn read(request: &mut Request) -> ListDeliveriesRequest {
    let page_size = read_page_size(request);
    let mut read_text = |field, parameter| read_single(request, (field, parameter));
    let page_token = read_text("page_token", CURSOR).unwrap_or_default();
    let created_from = read_text("created_from", "createdAt[after]");
    let created_until = read_text("created_until", "createdAt[before]");
    let dropoff_from = read_text("dropoff_from", "dropoff.before[after]");
    let dropoff_until = read_text("dropoff_until", "dropoff.before[before]");
    let names = ("status", "status");
    let status = read_parsed(request, names, "must be TODO or DONE", |text| match text {
        "TODO" => Some(Status::Todo.into()),
        "DONE" => Some(Status::Done.into()),
        _ => None,
    });
    let names = ("cancelled", "exists[cancelledAt]");
    let cancelled = read_parsed(request, names, "must be true or false", |text| match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    });
    let names = ("external_reference", "externalReference");
    let external_reference = read_parsed(request, names, "must not be empty", |text| {
        (!text.is_empty()).then(|| text.to_owned())
    });
    ListDeliveriesRequest {
        page_size,
        page_token,
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
