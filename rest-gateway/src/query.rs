//! The query parameters of a request that its operation does not have.

use http::Uri;
use url::form_urlencoded;

use crate::{
    api_description::operations::Operation,
    body_reader::{MAX_VIOLATIONS, ViolationCollector},
};

/// A violation for each unknown parameter of a query, once: a mistyped filter would match everything,
/// and a mistyped option would not apply. Documents and health checks ignore them, and so does the token
/// endpoint (RFC 6749 §3.2).
pub(crate) fn unknown_parameters(operation: &Operation, uri: &Uri) -> ViolationCollector {
    let query = match uri.query() {
        Some(query) if !operation.returns.is_fixed() => query,
        _ => return ViolationCollector::default(),
    };
    let known = operation.query_parameters();
    let description = match &known[..] {
        [] => "is unknown; there are no parameters".to_owned(),
        known => format!("is unknown; the parameters are {}", known.join(", ")),
    };
    let mut violations = ViolationCollector::default();
    let mut names = Vec::new();
    for (name, _) in form_urlencoded::parse(query.as_bytes()) {
        if names.len() == MAX_VIOLATIONS {
            break;
        }
        if !known.contains(&&*name) && !names.contains(&name) {
            violations.add_verbatim(&name, "UNKNOWN_PARAMETER", &description);
            names.push(name);
        }
    }
    violations
}
