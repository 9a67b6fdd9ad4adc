//! `X-Request-Id`: identifies a request in its response, in the logs and in its calls to core.

use http::{HeaderName, HeaderValue, Request};
use tower_http::request_id::{MakeRequestId, RequestId};
use uuid::Uuid;

/// The header, in requests and responses.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const MAX_REQUEST_ID: usize = 128;

/// Generates ids for requests without one: UUIDs in order of time.
#[derive(Clone, Copy)]
pub(crate) struct TimeOrderedId;

impl MakeRequestId for TimeOrderedId {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        let id = Uuid::now_v7().hyphenated().to_string();
        HeaderValue::from_str(&id).ok().map(RequestId::new)
    }
}

/// Removes the client's id unless it is a single well-formed one.
pub(crate) fn remove_malformed<B>(mut request: Request<B>) -> Request<B> {
    let mut values = request.headers().get_all(&REQUEST_ID).iter();
    let well_formed = match (values.next(), values.next()) {
        (None, _) => return request,
        (Some(value), None) => is_well_formed(value.as_bytes()),
        (Some(_), Some(_)) => false,
    };
    if !well_formed {
        request.headers_mut().remove(&REQUEST_ID);
    }
    request
}

/// Accepts the characters of UUIDs, ULIDs, trace ids and Base64; rejects any that could break a
/// log line or a header.
fn is_well_formed(value: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID).contains(&value.len())
        && value
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_has_at_most_128_safe_characters() {
        for right in [
            "a",
            "01932e5c-9f4a-7000-8000-00000000000a",
            "root=1-67:x/y+z=@~.",
        ] {
            assert!(is_well_formed(right.as_bytes()), "{right}");
        }
        for wrong in ["", "a b", "a\"b", "a,b", "é", &"a".repeat(129)] {
            assert!(!is_well_formed(wrong.as_bytes()), "{wrong}");
        }
    }
}
