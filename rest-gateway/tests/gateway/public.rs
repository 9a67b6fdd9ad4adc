//! Resources without authentication: the entrypoint and health.

use std::time::Duration;

use serde_json::json;

use crate::harness::{Client, Gateway, Platform};

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
    let without_core = Gateway::start(|config| {
        config.core_url = vec!["http://127.0.0.1:1".parse().unwrap()];
    });
    let platform = Platform::start().await;
    let until_ready = async {
        while platform.client.get("/readyz").await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), until_ready)
        .await
        .unwrap();

    let unready = Client::new(without_core.addr);
    let reason = "no core is ready: the cores' /readyz and logs say why\n";
    for (client, status, text) in [(&unready, 503, reason), (&platform.client, 200, "ok\n")] {
        let live = client.get("/healthz").await;
        assert_eq!((live.status.as_u16(), live.text()), (200, "ok\n"));
        let ready = client.get("/readyz").await;
        assert_eq!((ready.status.as_u16(), ready.text()), (status, text));
    }
    assert!(!platform.core.has_unread_call());
}
