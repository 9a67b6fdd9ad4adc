//! The id of a request: in its response, in the logs and in its calls to core.

use http::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID: usize = 128;

/// The id of a request: the client's if it is a single well-formed one, otherwise a new UUID in order
/// of time, which is added to the headers.
pub(crate) fn of(headers: &mut HeaderMap) -> HeaderValue {
    let mut values = headers.get_all(&REQUEST_ID).iter();
    let id = match (values.next(), values.next()) {
        (Some(id), None) if is_well_formed(id.as_bytes()) => id.clone(),
        _ => HeaderValue::try_from(Uuid::now_v7().to_string()).expect("digits and hyphens"),
    };
    headers.insert(&REQUEST_ID, id.clone());
    id
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
