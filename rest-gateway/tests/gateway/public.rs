//! Resources without authentication: the entrypoint and health.

use proto::ListPublicKeysResponse;
use serde_json::json;
use tonic::Status;

use crate::harness::Platform;

#[tokio::test]
async fn the_entrypoint_links_to_every_collection() {
    let platform = Platform::start().await;

    let reply = platform.client.get("/api").await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/Entrypoint",
            "@id": "/api",
            "@type": "Entrypoint",
            "delivery": "/api/deliveries",
            "event": "/api/events",
            "webhook": "/api/webhooks",
        })
    );
    assert!(!platform.core.has_unread_call());
}

#[tokio::test]
async fn a_gateway_is_live_without_a_core_and_ready_with_one() {
    let platform = Platform::start().await;
    // `/readyz` calls ListPublicKeys.
    platform.core.will_fail(Status::unavailable("starting"));
    platform.core.will_fail(Status::deadline_exceeded("slow"));
    platform
        .core
        .will_respond(ListPublicKeysResponse::default());

    let live = platform.client.get("/healthz").await;
    let unready = platform.client.get("/readyz").await;
    let late = platform.client.get("/readyz").await;
    let ready = platform.client.get("/readyz").await;

    assert_eq!((live.status.as_u16(), live.text()), (200, "ok\n"));
    assert_eq!((ready.status.as_u16(), ready.text()), (200, "ok\n"));
    for reply in [unready, late] {
        assert_eq!(reply.status, 503);
        assert_eq!(reply.error()["code"], "unavailable");
    }
}
