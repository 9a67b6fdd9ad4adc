//! A notification as the HTTP request that carries it, signed.

use std::time::SystemTime;

use bytes::Bytes;
use egress::{Policy, UrlError};
use http::{
    HeaderName, HeaderValue, Method, Request,
    header::{CONTENT_TYPE, USER_AGENT},
};
use http_body_util::Full;
use proto::{
    Notification,
    iri::{self, Collection},
};

use crate::signature::{self, Attempt, SecretError};

const AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// What is the same in all requests.
#[derive(Debug)]
pub(crate) struct Form {
    pub policy: Policy,
    /// `X-<Platform>-Signature`.
    pub signature_header: HeaderName,
}

/// Why a notification cannot be sent at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the webhook's url {0}")]
    Url(#[from] UrlError),
    #[error("the webhook's url cannot be called")]
    Uri(#[from] http::uri::InvalidUri),
    #[error("the notification's name `{0}` has no id")]
    Name(String),
    #[error("the webhook has no secret")]
    NoSecret,
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("a signature does not fit into a header")]
    Header(#[from] http::header::InvalidHeaderValue),
}

impl Form {
    /// The request of an attempt made now.
    pub(crate) fn fill(
        &self,
        notification: &Notification,
        now: SystemTime,
    ) -> Result<Request<Full<Bytes>>, RequestError> {
        let url = self.policy.check_url(&notification.url)?;
        let attempt = Attempt {
            id: Collection::Notifications
                .id(&notification.name)
                .ok_or_else(|| RequestError::Name(notification.name.clone()))?,
            timestamp: now
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs(),
        };

        let body = signature::body(&iri::of(&notification.object), &notification.event);
        let first = notification.secrets.first().ok_or(RequestError::NoSecret)?;
        let platform_signature = signature::platform_signature(&body, first);
        let signatures = attempt.signatures(&body, &notification.secrets)?;

        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.as_str().parse()?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(&self.signature_header, platform_signature.try_into()?);
        headers.insert("webhook-id", attempt.id.to_string().try_into()?);
        headers.insert("webhook-timestamp", attempt.timestamp.into());
        headers.insert("webhook-signature", signatures.try_into()?);
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt;

    use super::*;

    const ID: &str = "01932e5c-9f4a-7000-8000-00000000000a";
    const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn form() -> Form {
        Form {
            policy: Policy::default(),
            signature_header: HeaderName::from_static("x-service-signature"),
        }
    }

    fn notification() -> Notification {
        Notification {
            name: format!("notifications/{ID}"),
            url: "https://shop.example/hook?a=b".to_owned(),
            secrets: vec![SECRET.to_owned()],
            event: "delivery.completed".to_owned(),
            object: "deliveries/1".to_owned(),
            ..Notification::default()
        }
    }

    #[tokio::test]
    async fn a_request_carries_the_body_and_both_families_of_signatures() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_600_000_000_900);

        let request = form().fill(&notification(), now).unwrap();

        assert_eq!(request.method(), Method::POST);
        assert_eq!(request.uri(), "https://shop.example/hook?a=b");
        let body = br#"{"data":{"object":"\/api\/deliveries\/1","event":"delivery.completed"}}"#;
        let attempt = Attempt {
            id: ID.parse().unwrap(),
            timestamp: 1_600_000_000,
        };
        let signature = signature::platform_signature(body, SECRET);
        let signatures = attempt.signatures(body, &[SECRET.to_owned()]).unwrap();
        let headers: Vec<_> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(
            headers,
            [
                ("content-type", "application/json"),
                ("user-agent", "webhook-dispatcher/0.1.0"),
                ("x-service-signature", &signature),
                ("webhook-id", ID),
                ("webhook-timestamp", "1600000000"),
                ("webhook-signature", &signatures),
            ]
        );
        let sent = request.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&sent[..], body);
    }

    #[test]
    fn what_cannot_be_sent_says_why_without_the_secret() {
        let changed = |change: fn(&mut Notification)| {
            let mut notification = notification();
            change(&mut notification);
            form()
                .fill(&notification, SystemTime::UNIX_EPOCH)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            changed(|n| "http://shop.example/".clone_into(&mut n.url)),
            "the webhook's url is not https: only https:// is allowed"
        );
        assert_eq!(
            changed(|n| "notifications/1".clone_into(&mut n.name)),
            "the notification's name `notifications/1` has no id"
        );
        assert_eq!(changed(|n| n.secrets.clear()), "the webhook has no secret");
        assert_eq!(
            changed(|n| n.secrets = vec!["hunter2".to_owned()]),
            "the webhook has a secret that is not the base64 of 32 bytes"
        );
    }
}
