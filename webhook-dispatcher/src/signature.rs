//! The body of a notification, and its platform and Standard Webhooks signatures.

use anyhow::Context as _;
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use serde::Serialize;
use sha2::Sha256;
use uuid::Uuid;

/// The body of a notification: compact JSON with escaped slashes, as PHP encodes it, for receivers
/// that decode and re-encode the body before they verify it.
pub(crate) fn body(object: &str, event: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a> {
        data: Data<'a>,
    }
    #[derive(Serialize)]
    struct Data<'a> {
        object: &'a str,
        event: &'a str,
    }

    let notification = Notification {
        data: Data { object, event },
    };
    serde_json::to_string(&notification)
        .expect("strings can be serialized as JSON")
        // JSON has slashes only in strings, where `\/` is equivalent.
        .replace('/', r"\/")
        .into_bytes()
}

/// The value of `X-<Platform>-Signature`: keyed with the secret's text.
pub(crate) fn platform_signature(body: &[u8], secret: &str) -> String {
    STANDARD.encode(hmac_sha256(secret.as_bytes(), &[body]))
}

/// The signed metadata of an attempt (Standard Webhooks).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignatureMetadata {
    /// Value of `webhook-id`.
    pub id: Uuid,
    /// Value of `webhook-timestamp`, in Unix time (seconds).
    pub timestamp: u64,
}

impl SignatureMetadata {
    /// The value of `webhook-signature`: one entry for each secret, keyed with its decoded bytes.
    pub(crate) fn signatures(&self, body: &[u8], secrets: &[String]) -> anyhow::Result<String> {
        let prefix = format!("{}.{}.", self.id, self.timestamp);
        let entries: Vec<_> = secrets
            .iter()
            .map(|secret| {
                let key = decode(secret)?;
                let signature = hmac_sha256(&key, &[prefix.as_bytes(), body]);
                Ok(format!("v1,{}", STANDARD.encode(signature)))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(entries.join(" "))
    }
}

/// The error does not contain the secret.
fn decode(secret: &str) -> anyhow::Result<[u8; 32]> {
    let key = STANDARD.decode(secret).ok();
    key.and_then(|key| key.try_into().ok())
        .context("the webhook has a secret that is not the base64 of 32 bytes")
}

fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC accepts keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use http::HeaderMap;
    use proptest::prelude::*;
    use standardwebhooks::Webhook;

    use super::*;

    const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    const OTHER_SECRET: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

    #[test]
    fn a_body_is_compact_with_escaped_slashes() {
        assert_eq!(
            body("/api/deliveries/1", "delivery.picked"),
            br#"{"data":{"object":"\/api\/deliveries\/1","event":"delivery.picked"}}"#
        );
    }

    #[test]
    fn the_platform_signature_uses_the_text_of_the_secret_as_key() {
        let body = br#"{"data":{"object":"\/api\/deliveries\/1","event":"delivery.picked"}}"#;
        assert_eq!(
            platform_signature(body, "123456"),
            "S9LMKpq4VBDEGm5umbQx/q4SQMnpX/Wz/719dBBZ3rI="
        );
    }

    #[test]
    fn the_standard_webhooks_library_verifies_the_signature_of_every_secret() {
        let body = body("/api/deliveries/1", "delivery.completed");
        let metadata = SignatureMetadata {
            id: Uuid::now_v7(),
            timestamp: SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs(),
        };
        let secrets = [SECRET.to_owned(), OTHER_SECRET.to_owned()];
        let signatures = metadata.signatures(&body, &secrets).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", metadata.id.to_string().parse().unwrap());
        headers.insert("webhook-timestamp", metadata.timestamp.into());
        headers.insert("webhook-signature", signatures.parse().unwrap());

        for secret in &secrets {
            Webhook::new(secret)
                .unwrap()
                .verify(&body, &headers)
                .unwrap();
        }
        let unknown = Webhook::from_bytes(vec![0; 32]).unwrap();
        assert!(unknown.verify(&body, &headers).is_err());
        let known = Webhook::new(SECRET).unwrap();
        assert!(known.verify(b"{}", &headers).is_err());
    }

    #[test]
    fn a_malformed_secret_is_rejected_without_disclosing_it() {
        let metadata = SignatureMetadata {
            id: Uuid::nil(),
            timestamp: 0,
        };
        for secret in ["", "123456", "MTIzNDU2", &SECRET[..43], "*"] {
            let error = metadata
                .signatures(b"", &[secret.to_owned()])
                .unwrap_err()
                .to_string();
            assert_eq!(
                error,
                "the webhook has a secret that is not the base64 of 32 bytes"
            );
        }
    }

    proptest! {
        #[test]
        fn a_body_parses_back_to_its_parts(object: String, event: String) {
            let read: serde_json::Value = serde_json::from_slice(&body(&object, &event)).unwrap();
            let expected = serde_json::json!({"data": {"object": object, "event": event}});
            prop_assert_eq!(read, expected);
        }
    }
}
