//! `Idempotency-Key`: the key and the hash of a request, for core.

use http::{HeaderName, HeaderValue, request::Parts, uri::PathAndQuery};
use proto::Idempotency;
use sha2::{Digest, Sha256};

use crate::violations::ViolationCollector;

pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");

const MAX_KEY_LENGTH: usize = 255;

/// The key of a request, if it has a valid one, and the hash of the request. A repetition must send
/// the same bytes.
pub(crate) fn read(
    request: &Parts,
    body: &[u8],
    violations: &mut ViolationCollector,
) -> Option<Idempotency> {
    let mut values = request.headers.get_all(&KEY).iter();
    let value = values.next()?;
    let key = match values.next() {
        None => parse(value),
        Some(_) => Err("must occur only once".to_owned()),
    };
    match key {
        Ok(key) => Some(Idempotency {
            key,
            request_hash: hash(request, body),
        }),
        Err(description) => {
            violations.add("Idempotency-Key", "INVALID_IDEMPOTENCY_KEY", description);
            None
        }
    }
}

/// Reads a key: a text, or the same text as the quoted string of a structured field (RFC 9651 §3.3.3),
/// as the draft of the header has it.
fn parse(value: &HeaderValue) -> Result<String, String> {
    let text = value.to_str().unwrap_or_default();
    let is_quoted = text.starts_with('"');
    // A string of JSON has the same escapes, and a few more.
    let unquoted = is_quoted.then(|| serde_json::from_str::<String>(text).ok());
    let text = unquoted.flatten().unwrap_or_else(|| text.to_owned());
    if (1..=MAX_KEY_LENGTH).contains(&text.len())
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    {
        Ok(text)
    } else {
        Err(format!(
            "must be 1 to {MAX_KEY_LENGTH} printable ASCII characters"
        ))
    }
}

/// Hashes method, URL and body. Neither method nor URL can contain the line breaks that separate them.
fn hash(request: &Parts, body: &[u8]) -> Vec<u8> {
    let target = request.uri.path_and_query();
    let url = target.map_or("", PathAndQuery::as_str);
    Sha256::new()
        .chain_update(request.method.as_str())
        .chain_update("\n")
        .chain_update(url)
        .chain_update("\n")
        .chain_update(body)
        .finalize()
        .to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_one_to_255_printable_ascii_characters() {
        for right in ["k", "order 1, try 2", &"k".repeat(255)] {
            let value = HeaderValue::from_str(right).unwrap();
            assert_eq!(parse(&value).as_deref(), Ok(right));
        }
        for wrong in ["", "\"\"", "é", "a\tb", &"k".repeat(256)] {
            let value = HeaderValue::from_str(wrong).unwrap();
            assert!(parse(&value).is_err(), "{wrong}");
        }
    }

    /// As the draft of the header writes it, and as most clients do.
    #[test]
    fn a_key_in_quotes_is_the_key_without() {
        for (written, key) in [
            (r#""basket-77""#, "basket-77"),
            (r#""a\"b\\c""#, r#"a"b\c"#),
            // Not strings of structured fields: keys as they are.
            (r#"""#, r#"""#),
            (r#""a"b""#, r#""a"b""#),
            (r#""a\x""#, r#""a\x""#),
            (r#""a", "b""#, r#""a", "b""#),
            (r#"a"b"#, r#"a"b"#),
        ] {
            let value = HeaderValue::from_str(written).unwrap();
            assert_eq!(parse(&value).as_deref(), Ok(key), "{written}");
        }
    }

    proptest! {
        #[test]
        fn a_valid_key_without_quotes_is_the_unchanged_header_value(key in "[ !#-~]{1,255}") {
            let value = HeaderValue::from_str(&key).unwrap();

            prop_assert_eq!(parse(&value), Ok(key));
        }

        #[test]
        fn a_valid_key_is_the_content_of_a_quoted_string(key in "[ -~]{1,100}") {
            let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
            let value = HeaderValue::from_str(&quoted).unwrap();

            prop_assert_eq!(parse(&value), Ok(key));
        }

        #[test]
        fn a_key_with_a_byte_that_is_not_printable_ascii_is_rejected(
            before in "[ -~]{0,127}", wrong in prop_oneof![Just(b'\t'), 0x80..=0xff_u8], after in "[ -~]{0,127}",
        ) {
            let bytes = [before.as_bytes(), &[wrong], after.as_bytes()].concat();
            let value = HeaderValue::from_bytes(&bytes).unwrap();

            prop_assert!(parse(&value).is_err());
        }
    }
}
