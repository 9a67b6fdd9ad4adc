//! Several cores, some of them gone.

use std::time::Duration;

use proto::{GetTaskRequest, task};
use rest_gateway::CoreUrl;
use tokio::net::TcpListener;

use crate::harness::{
    Client, FakeCore, Gateway, Network, Platform,
    samples::{ID, task},
};

/// An address at which nobody listens.
async fn nobody() -> CoreUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    format!("http://{addr}").parse().unwrap()
}

#[tokio::test]
async fn cores_are_called_in_turn() {
    let (first, second) = (FakeCore::start().await, FakeCore::start().await);
    let gateway = Gateway::start(|config| config.core_url = vec![first.url(), second.url()]).await;
    let client = Client::new(gateway.addr);
    for _ in 0..2 {
        first.will_answer(task(task::Kind::Pickup));
        second.will_answer(task(task::Kind::Pickup));
    }

    for _ in 0..4 {
        let reply = client.get(&format!("/api/tasks/{ID}")).await;
        assert_eq!(reply.status, 200);
    }

    for core in [first, second] {
        core.received::<GetTaskRequest>();
        core.received::<GetTaskRequest>();
        assert!(!core.was_called());
    }
}

#[tokio::test]
async fn a_core_that_is_gone_is_not_noticed_while_there_is_another() {
    let core = FakeCore::start().await;
    let gone = nobody().await;
    let gateway = Gateway::start(|config| config.core_url = vec![gone, core.url()]).await;
    let client = Client::new(gateway.addr);

    for _ in 0..6 {
        core.will_answer(proto::Webhook {
            name: format!("webhooks/{ID}"),
            ..proto::Webhook::default()
        });
        let reply = client.post("/api/webhooks", "{}").await;
        assert_eq!(reply.status, 201);
    }
}

#[tokio::test]
async fn without_any_core_there_is_503() {
    let gone = nobody().await;
    let gateway = Gateway::start(|config| config.core_url = vec![gone.clone(), gone]).await;
    let client = Client::new(gateway.addr);

    let reply = client.get(&format!("/api/tasks/{ID}")).await;

    assert_eq!(reply.status, 503);
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(reply.error()["code"], "unavailable");
}

#[tokio::test]
async fn a_call_lost_on_its_way_is_repeated_only_if_that_is_harmless() {
    let (first, second) = (FakeCore::start().await, FakeCore::start().await);
    let gateway = Gateway::start(|config| config.core_url = vec![first.url(), second.url()]).await;
    let client = Client::new(gateway.addr);

    first.will_panic();
    second.will_answer(task(task::Kind::Pickup));
    let read = client.get(&format!("/api/tasks/{ID}")).await;
    second.will_panic();
    let created = client.post("/api/webhooks", "{}").await;

    assert_eq!(read.status, 200);
    assert_eq!(created.status, 503);
}

#[tokio::test]
async fn a_core_that_comes_back_is_called_again() {
    let platform = Platform::start().await;
    platform.core.will_panic();
    platform.core.will_answer(task(task::Kind::Pickup));

    let lost = platform.client.get(&format!("/api/tasks/{ID}")).await;
    let found = platform.client.get(&format!("/api/tasks/{ID}")).await;

    assert_eq!(lost.status, 503);
    assert_eq!(found.status, 200);
}

fn webhook() -> proto::Webhook {
    proto::Webhook {
        name: format!("webhooks/{ID}"),
        ..proto::Webhook::default()
    }
}

#[tokio::test]
async fn a_core_behind_a_network_that_swallows_everything_keeps_nobody_waiting() {
    let (silent, other) = (FakeCore::start().await, FakeCore::start().await);
    let network = Network::before(&silent.url()).await;
    let gateway = Gateway::start(|config| {
        config.core_url = vec![network.url(), other.url()];
        config.request_timeout = Duration::from_hours(1);
    })
    .await;
    let client = Client::new(gateway.addr);
    let task_path = format!("/api/tasks/{ID}");
    for core in [&silent, &other] {
        core.will_answer(task(task::Kind::Pickup));
        assert_eq!(client.get(&task_path).await.status, 200);
    }

    network.swallow();
    // One of them goes into the void; when that is found out, it is asked again elsewhere.
    for _ in 0..2 {
        other.will_answer(task(task::Kind::Pickup));
        let reply = tokio::time::timeout(Duration::from_secs(20), client.get(&task_path)).await;
        assert_eq!(reply.expect("two seconds are enough").status, 200);
    }
    // From then on not even what must not be repeated is sent there.
    for _ in 0..6 {
        other.will_answer(webhook());
        let reply = client.post("/api/webhooks", "{}");
        let reply = tokio::time::timeout(Duration::from_secs(20), reply).await;
        assert_eq!(reply.expect("nobody waits for it").status, 201);
    }

    network.mend();
    silent.will_answer(task(task::Kind::Pickup));
    silent.received::<GetTaskRequest>();
    while !silent.was_called() {
        other.will_answer(task(task::Kind::Pickup));
        client.get(&task_path).await;
    }
}
