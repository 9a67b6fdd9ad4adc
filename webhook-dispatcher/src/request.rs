//! Builds the signed HTTP request of a notification.

use std::time::SystemTime;

use anyhow::Context as _;
use bytes::Bytes;
use egress::{Policy, UrlError};
use http::{
    HeaderName, HeaderValue, Method, Request,
    header::{CONTENT_TYPE, USER_AGENT},
};
use http_body_util::Full;
use process::traces;
use proto::{
    Notification,
    iri::{self, Collection},
};

use crate::signature::{self, SignatureMetadata};

const USER_AGENT_VALUE: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// Settings common to all requests.
#[derive(Debug)]
pub(crate) struct RequestTemplate {
    pub policy: Policy,
    /// `X-<Platform>-Signature`.
    pub signature_header: HeaderName,
}

/// Why a request cannot be built for a notification.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the webhook's url {0}")]
    Url(#[from] UrlError),
    #[error("the webhook's url cannot be used in a request")]
    Uri(#[from] http::uri::InvalidUri),
    /// A defect of core, not of the receiver.
    #[error(transparent)]
    Notification(#[from] anyhow::Error),
}

impl RequestTemplate {
    /// Builds the request of an attempt made at `now`.
    pub(crate) fn build(
        &self,
        notification: &Notification,
        now: SystemTime,
    ) -> Result<Request<Full<Bytes>>, RequestError> {
        let url = self.policy.check_url(&notification.url)?;
        let metadata = SignatureMetadata {
            id: Collection::Notifications
                .id(&notification.name)
                .with_context(|| {
                    format!("the notification's name `{}` has no id", notification.name)
                })?,
            timestamp: now
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs(),
        };

        let body = signature::body(&iri::of(&notification.object), &notification.event);
        let first = notification.secrets.first();
        let first = first.context("the webhook has no secret")?;
        let platform_signature = signature::platform_signature(&body, first);
        let signatures = metadata.signatures(&body, &notification.secrets)?;

        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.as_str().parse()?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
        headers.insert(&self.signature_header, header(platform_signature)?);
        headers.insert("webhook-id", header(metadata.id.to_string())?);
        headers.insert("webhook-timestamp", metadata.timestamp.into());
        headers.insert("webhook-signature", header(signatures)?);
        traces::inject(headers);
        Ok(request)
    }
}

fn header(value: String) -> anyhow::Result<HeaderValue> {
    value
        .try_into()
        .context("a signature is not a valid header value")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt;

    use super::*;

    const ID: &str = "01932e5c-9f4a-7000-8000-00000000000a";
    const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

    fn template() -> RequestTemplate {
        RequestTemplate {
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
    async fn a_request_has_the_body_and_both_kinds_of_signatures() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_600_000_000_900);

        let request = template().build(&notification(), now).unwrap();

        assert_eq!(request.method(), Method::POST);
        assert_eq!(request.uri(), "https://shop.example/hook?a=b");
        let body = br#"{"data":{"object":"\/api\/deliveries\/1","event":"delivery.completed"}}"#;
        let metadata = SignatureMetadata {
            id: ID.parse().unwrap(),
            timestamp: 1_600_000_000,
        };
        let signature = signature::platform_signature(body, SECRET);
        let signatures = metadata.signatures(body, &[SECRET.to_owned()]).unwrap();
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
    fn an_error_gives_the_reason_without_the_secret() {
        let error_after = |change: fn(&mut Notification)| {
            let mut notification = notification();
            change(&mut notification);
            template()
                .build(&notification, SystemTime::UNIX_EPOCH)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error_after(|n| "http://shop.example/".clone_into(&mut n.url)),
            "the webhook's url is not https: only https:// is allowed"
        );
        assert_eq!(
            error_after(|n| "notifications/1".clone_into(&mut n.name)),
            "the notification's name `notifications/1` has no id"
        );
        assert_eq!(
            error_after(|n| n.secrets.clear()),
            "the webhook has no secret"
        );
        assert_eq!(
            error_after(|n| n.secrets = vec!["hunter2".to_owned()]),
            "the webhook has a secret that is not the base64 of 32 bytes"
        );
    }
}
