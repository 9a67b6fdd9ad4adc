//! JSON Web Tokens: their content, and altered copies.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

/// The header (part 0) or the claims (part 1) of a token.
pub(crate) fn decoded(token: &str, part: usize) -> Value {
    let part = token.split('.').nth(part).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// A text with the Base64 character at this index replaced by another one.
pub(crate) fn altered(text: &str, index: usize) -> String {
    let other = if text.as_bytes()[index] == b'A' {
        "B"
    } else {
        "A"
    };
    format!("{}{other}{}", &text[..index], &text[index + 1..])
}
