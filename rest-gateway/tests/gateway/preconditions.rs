//! Conditions of a request: `Accept` and `If-Match`.

use http::{Method, header::IF_MATCH};
use proto::{CancelDeliveryRequest, DeleteWebhookResponse, Delivery, task};

use crate::harness::{
    Platform,
    samples::{ID, task},
};

#[tokio::test]
async fn a_delete_is_executed_with_any_accept_header() {
    let platform = Platform::start().await;
    for accept in ["text/html", "*/*;q=0", "application/json", ""] {
        platform.core.will_respond(Delivery::default());
        platform.core.will_respond(DeleteWebhookResponse {});

        for collection in ["deliveries", "webhooks"] {
            let request = platform
                .client
                .request(Method::DELETE, &format!("/api/{collection}/{ID}"))
                .header("accept", accept);
            let reply = platform.client.send(request, "").await;

            assert_eq!(reply.status, 204, "{collection} {accept}: {}", reply.text());
            assert!(reply.body.is_empty());
        }
    }
}

#[tokio::test]
async fn a_request_whose_if_match_cannot_be_met_is_412_and_not_executed() {
    let platform = Platform::start().await;
    let paths = [
        (Method::DELETE, format!("/api/deliveries/{ID}")),
        (Method::PUT, format!("/api/tasks/{ID}/done")),
        (Method::POST, "/api/deliveries".to_owned()),
        (Method::GET, format!("/api/tasks/{ID}")),
        (Method::GET, "/healthz".to_owned()),
    ];
    for (method, path) in &paths {
        for tags in ["\"a\"", "W/\"a\"", "\"a\", W/\"b\"", "", "nonsense"] {
            let request = platform.client.request(method.clone(), path);
            let request = request.header(IF_MATCH, tags);
            let reply = platform.client.send(request, "").await;

            assert_eq!(reply.status, 412, "{method} {path} {tags}");
            assert_eq!(reply.error()["code"], "precondition_failed");
        }
    }
    assert!(!platform.core.has_unread_call());

    // A `*` is met by every resource that exists.
    platform.core.will_respond(Delivery::default());
    let any = platform.client.request(Method::DELETE, &paths[0].1);
    let cancelled = platform.client.send(any.header(IF_MATCH, "*"), "").await;
    platform.core.will_respond(task(task::Kind::Pickup));
    let any = platform.client.request(Method::GET, &paths[3].1);
    let read = platform.client.send(any.header(IF_MATCH, "*"), "").await;

    assert_eq!(
        (cancelled.status.as_u16(), read.status.as_u16()),
        (204, 200)
    );
    platform.core.received::<CancelDeliveryRequest>();
}
