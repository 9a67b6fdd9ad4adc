//! The query of the list of deliveries: which page, and which deliveries. Names are as API
//! Platform's filters have them, which existing clients know.

use proto::{ListDeliveriesRequest, task::Status};
use url::form_urlencoded;

use crate::{collection::read_once, report::Report, request::Request};

const CURSOR: &str = "cursor";

/// Every parameter there is.
const PARAMETERS: [&str; 9] = [
    CURSOR,
    "itemsPerPage",
    "externalReference",
    "createdAt[after]",
    "createdAt[before]",
    "dropoff.before[after]",
    "dropoff.before[before]",
    "status",
    "exists[cancelledAt]",
];

/// Reads what can be represented, and reports the rest. A parameter that there is not is
/// reported too: to whom a filter is mistyped, everything would look like a match.
pub(super) fn read(request: &Request, report: &mut Report) -> ListDeliveriesRequest {
    let mut once = |field, parameter| read_once(request, (field, parameter), report);
    let page_size = once("page_size", "itemsPerPage");
    let cursor = once("page_token", CURSOR);
    let external_reference = once("external_reference", "externalReference");
    let created_from = once("created_from", "createdAt[after]");
    let created_until = once("created_until", "createdAt[before]");
    let dropoff_from = once("dropoff_from", "dropoff.before[after]");
    let dropoff_until = once("dropoff_until", "dropoff.before[before]");
    let status = once("status", "status");
    let cancelled = once("cancelled", "exists[cancelledAt]");

    for (name, _) in parameters(request) {
        if !PARAMETERS.contains(&name.as_ref()) {
            let known = PARAMETERS.join(", ");
            report.add_verbatim(&name, "UNKNOWN_PARAMETER", format!("is none of {known}"));
        }
    }
    let page_size = page_size.and_then(|text| {
        let size = text.parse().ok();
        check(
            size,
            "page_size",
            "must be a whole number from 1 to 100",
            report,
        )
    });
    let status = status.and_then(|text| {
        let status = match text.as_str() {
            "TODO" => Some(Status::Todo.into()),
            "DONE" => Some(Status::Done.into()),
            _ => None,
        };
        check(status, "status", "must be TODO or DONE", report)
    });
    let cancelled = cancelled.and_then(|text| {
        let cancelled = match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        check(cancelled, "cancelled", "must be true or false", report)
    });
    let external_reference = external_reference.and_then(|text| {
        let given = Some(text).filter(|text| !text.is_empty());
        check(given, "external_reference", "must not be empty", report)
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
        violations: report.violations(),
    }
}

/// What the query asks for, but for where in it: links to other pages ask for the same.
pub(super) fn without_cursor(request: &Request) -> String {
    let kept = parameters(request).filter(|(name, _)| name != CURSOR);
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(kept)
        .finish()
}

fn parameters(request: &Request) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(request.parts.uri.query().unwrap_or_default().as_bytes())
}

/// What was read for a field, or why nothing was.
fn check<T>(read: Option<T>, field: &str, otherwise: &str, report: &mut Report) -> Option<T> {
    if read.is_none() {
        report.add(field, "WRONG_TYPE", otherwise);
    }
    read
}
