//! `Idempotency-Key`: what core is told of a request that may be repeated, and how its client is
//! told that the answer is the first one's.

use http::{HeaderName, HeaderValue};
use proto::Idempotency;
use sha2::{Digest, Sha256};

use crate::{error::Error, report::Report, request::Request, routes::Answer};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const LONGEST: usize = 255;

/// A key, and what is hashed of its request so far.
pub(crate) struct Key {
    key: String,
    hash: Sha256,
}

impl Key {
    /// The request's key, if it has one.
    pub(crate) fn of(request: &Request, report: &mut Report) -> Option<Self> {
        let mut values = request.headers().get_all(&KEY).iter();
        let value = values.next()?;
        let text = match values.next() {
            None => read(value),
            Some(_) => Err("is there more than once".to_owned()),
        };
        match text {
            Ok(key) => Some(Self {
                key,
                hash: start_hash(request),
            }),
            Err(wrong) => {
                report.add("Idempotency-Key", "INVALID_IDEMPOTENCY_KEY", wrong);
                None
            }
        }
    }

    /// The bytes of the body count, not what they say: a client that repeats a request sends
    /// the same ones.
    pub(crate) fn with_body(self, body: &[u8]) -> Idempotency {
        Idempotency {
            key: self.key,
            request_hash: self.hash.chain_update(body).finalize().to_vec(),
        }
    }
}

fn read(value: &HeaderValue) -> Result<String, String> {
    let text = value.to_str().unwrap_or_default();
    if (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        Ok(text.to_owned())
    } else {
        Err(format!("must be 1 to {LONGEST} printable ASCII characters"))
    }
}

/// Neither a method nor an address has a line break in it, so that none runs into the next.
fn start_hash(request: &Request) -> Sha256 {
    let address = request
        .parts
        .uri
        .path_and_query()
        .map_or("", http::uri::PathAndQuery::as_str);
    Sha256::new()
        .chain_update(request.parts.method.as_str())
        .chain_update("\n")
        .chain_update(address)
        .chain_update("\n")
}

/// What core is told of a request that says everything by its address: its body is `{}`, or none
/// at all.
pub(crate) fn without_content(request: Request) -> Result<Option<Idempotency>, Error> {
    let mut report = Report::default();
    let key = Key::of(&request, &mut report);
    let body = request.empty_json(&mut report)?;
    match report.into_error() {
        Some(error) => Err(error),
        None => Ok(key.map(|key| key.with_body(&body))),
    }
}

/// Shows what core answered, and that it was answered before, if core says so.
pub(crate) fn answer<M>(response: tonic::Response<M>, show: impl FnOnce(M) -> Answer) -> Answer {
    let (metadata, message, _) = response.into_parts();
    let mut answer = show(message)?;
    if metadata.contains_key(proto::IDEMPOTENT_REPLAYED) {
        answer
            .headers_mut()
            .insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_one_to_255_printable_ascii_characters() {
        for right in ["k", "\"8e03978e\"", "order 1, try 2", &"k".repeat(255)] {
            let value = HeaderValue::from_str(right).unwrap();
            assert_eq!(read(&value).as_deref(), Ok(right));
        }
        for wrong in ["", "é", "a\tb", &"k".repeat(256)] {
            let value = HeaderValue::from_str(wrong).unwrap();
            assert!(read(&value).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_a_key_as_it_is_or_none(bytes in any::<Vec<u8>>()) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes)
                && let Ok(key) = read(&value)
            {
                prop_assert_eq!(key.as_bytes(), bytes);
            }
        }
    }
}
