//! Several cores, some of them unreachable.

use std::time::{Duration, Instant};

use proto::{GetTaskRequest, task};
use rest_gateway::CoreUrl;
use tokio::net::TcpListener;

use crate::harness::{
    Client, FakeCore, Gateway, Platform, StallingProxy,
    samples::{ID, task},
};

/// The two seconds in which a call reaches another core, and as much for a busy machine.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(4);

/// Far longer than the gateway takes to connect to a core again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(20);

/// The URL of a port without a listener.
async fn unreachable_core() -> CoreUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    format!("http://{addr}").parse().unwrap()
}

#[tokio::test]
async fn cores_are_called_round_robin() {
    let (first, second) = (FakeCore::start().await, FakeCore::start().await);
    let gateway = Gateway::start(|config| config.core_url = vec![first.url(), second.url()]);
    let client = Client::new(gateway.addr);
    for _ in 0..2 {
        first.will_respond(task(task::Kind::Pickup));
        second.will_respond(task(task::Kind::Pickup));
    }

    for _ in 0..4 {
        let reply = client.get(&format!("/api/tasks/{ID}")).await;
        assert_eq!(reply.status, 200);
    }

    for core in [first, second] {
        core.received::<GetTaskRequest>();
        core.received::<GetTaskRequest>();
        assert!(!core.has_unread_call());
    }
}

#[tokio::test]
async fn calls_fail_over_from_an_unreachable_core() {
    let core = FakeCore::start().await;
    let unreachable = unreachable_core().await;
    let gateway = Gateway::start(|config| config.core_url = vec![unreachable, core.url()]);
    let client = Client::new(gateway.addr);

    for _ in 0..6 {
        core.will_respond(webhook());
        let reply = client.post("/api/webhooks", "{}").await;
        assert_eq!(reply.status, 201);
    }
}

#[tokio::test]
async fn without_a_reachable_core_a_request_is_503() {
    let unreachable = unreachable_core().await;
    let gateway = Gateway::start(|config| config.core_url = vec![unreachable.clone(), unreachable]);
    let client = Client::new(gateway.addr);

    let reply = client.get(&format!("/api/tasks/{ID}")).await;

    assert_eq!(reply.status, 503);
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(reply.error()["code"], "unavailable");
}

#[tokio::test]
async fn a_call_without_response_is_retried_only_if_that_is_safe() {
    let (first, second) = (FakeCore::start().await, FakeCore::start().await);
    let gateway = Gateway::start(|config| config.core_url = vec![first.url(), second.url()]);
    let client = Client::new(gateway.addr);

    first.will_panic();
    second.will_respond(task(task::Kind::Pickup));
    let read = client.get(&format!("/api/tasks/{ID}")).await;
    second.will_panic();
    let created = client.post("/api/webhooks", "{}").await;

    assert_eq!(read.status, 200);
    assert_eq!(created.status, 503);
}

#[tokio::test]
async fn a_core_that_recovers_is_called_again() {
    let platform = Platform::start().await;
    platform.core.will_panic();
    platform.core.will_respond(task(task::Kind::Pickup));

    let failed = platform.client.get(&format!("/api/tasks/{ID}")).await;
    let succeeded = platform.client.get(&format!("/api/tasks/{ID}")).await;

    assert_eq!(failed.status, 503);
    assert_eq!(succeeded.status, 200);
}

fn webhook() -> proto::Webhook {
    proto::Webhook {
        name: format!("webhooks/{ID}"),
        ..proto::Webhook::default()
    }
}

#[tokio::test]
async fn calls_fail_over_from_a_core_that_stops_responding() {
    let (stalled, other) = (FakeCore::start().await, FakeCore::start().await);
    let proxy = StallingProxy::in_front_of(&stalled.url()).await;
    let gateway = Gateway::start(|config| {
        config.core_url = vec![proxy.url(), other.url()];
        config.request_timeout = Duration::from_hours(1);
    });
    let client = Client::new(gateway.addr);
    let task_path = format!("/api/tasks/{ID}");
    for core in [&stalled, &other] {
        core.will_respond(task(task::Kind::Pickup));
        assert_eq!(client.get(&task_path).await.status, 200);
    }

    proxy.stall();
    // One of them is sent to the stalled core, and retried when the health check fails.
    for _ in 0..2 {
        other.will_respond(task(task::Kind::Pickup));
        let reply = tokio::time::timeout(FAILOVER_TIMEOUT, client.get(&task_path)).await;
        assert_eq!(reply.expect("failover takes two seconds").status, 200);
    }
    // The stalled core is marked down now, so calls that are unsafe to retry avoid it, too.
    for _ in 0..6 {
        other.will_respond(webhook());
        let reply = client.post("/api/webhooks", "{}");
        let reply = tokio::time::timeout(FAILOVER_TIMEOUT, reply).await;
        assert_eq!(
            reply.expect("no call waits for the stalled core").status,
            201
        );
    }

    proxy.resume();
    stalled.will_respond(task(task::Kind::Pickup));
    // The call from before the stall.
    stalled.received::<GetTaskRequest>();
    let resumed = Instant::now();
    while !stalled.has_unread_call() {
        assert!(
            resumed.elapsed() < RECOVERY_TIMEOUT,
            "the stalled core is not called again"
        );
        other.will_respond(task(task::Kind::Pickup));
        client.get(&task_path).await;
    }
}
