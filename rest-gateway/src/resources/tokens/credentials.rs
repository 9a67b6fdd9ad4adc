//! Parses token requests: client credentials by HTTP Basic, and the form.

use std::collections::HashMap;

use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

use super::TokenError;

/// Limit for parameter names in error messages, in characters.
const MAX_NAME_LENGTH: usize = 100;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The parameters of the body, each at most once.
pub(super) struct TokenForm(HashMap<String, String>);

impl TokenForm {
    pub(super) fn parse(body: &[u8]) -> Result<Self, TokenError> {
        let mut parameters = HashMap::new();
        for (name, value) in form_urlencoded::parse(body) {
            let repeated = parameters.insert(name.to_string(), value.into_owned());
            if repeated.is_some() {
                let name: String = name.chars().take(MAX_NAME_LENGTH).collect();
                return Err(TokenError::invalid_request(format!(
                    "{name} must occur only once"
                )));
            }
        }
        Ok(Self(parameters))
    }

    /// A parameter with an empty value counts as absent (RFC 6749 §3.2).
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }
}

pub(super) struct Credentials {
    pub(super) api_key: String,
    pub(super) api_secret: String,
}

impl Credentials {
    /// Parses HTTP Basic (RFC 7617) with a form-encoded key and secret (RFC 6749 §2.3.1).
    pub(super) fn from_header(headers: &HeaderMap) -> Result<Option<Self>, TokenError> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let value = match (values.next(), values.next()) {
            (None, _) => return Ok(None),
            (Some(value), None) => value,
            (Some(_), Some(_)) => {
                return Err(TokenError::invalid_request(
                    "the Authorization header must occur only once",
                ));
            }
        };
        Self::parse(value).map(Some).ok_or_else(|| {
            TokenError::invalid_client(
                "the Authorization header must be Basic, followed by the Base64 of key:secret",
            )
        })
    }

    fn parse(value: &HeaderValue) -> Option<Self> {
        let (scheme, encoded) = value.to_str().ok()?.trim().split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = BASE64.decode(encoded.trim()).ok()?;
        let text = String::from_utf8(decoded).ok()?;
        let (key, secret) = text.split_once(':')?;
        Some(Self {
            api_key: form_decode(key)?,
            api_secret: form_decode(secret)?,
        })
    }
}

fn form_decode(text: &str) -> Option<String> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::{collection, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn encoded_credentials_are_parsed(key in "[^:]*", secret in any::<String>()) {
            let encode = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let text = BASE64.encode(format!("{}:{}", encode(&key), encode(&secret)));
            let value = HeaderValue::from_str(&format!("Basic {text}")).unwrap();

            let credentials = Credentials::parse(&value).unwrap();

            prop_assert_eq!((credentials.api_key, credentials.api_secret), (key, secret));
        }

        #[test]
        fn an_encoded_form_is_parsed(
            parameters in collection::hash_map(any::<String>(), any::<String>(), 0..6),
        ) {
            let body = form_urlencoded::Serializer::new(String::new())
                .extend_pairs(&parameters)
                .finish();

            let Ok(form) = TokenForm::parse(body.as_bytes()) else {
                panic!("the form has unique names: {body}");
            };

            for (name, value) in &parameters {
                let given = Some(value.as_str()).filter(|value| !value.is_empty());
                prop_assert_eq!(form.get(name), given);
            }
        }

        #[test]
        fn the_parsers_never_panic(bytes in any::<Vec<u8>>()) {
            let _ = TokenForm::parse(&bytes);
            let encoded = format!("Basic {}", BASE64.encode(&bytes));
            let _ = Credentials::parse(&HeaderValue::from_str(&encoded).unwrap());
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let _ = Credentials::parse(&value);
            }
        }
    }
}
