//! Hanging receivers delay no others, and a burst of notifications is sent once each.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures_util::future::join_all;
use serde_json::json;
use tokio::net::TcpListener;

use super::{draft, iri};
use crate::harness::{ApiClient, Platform, WebhookReceiver};

/// The number of deliveries in a burst.
const BURST: usize = 60;

/// A receiver that accepts connections and never responds.
struct HangingReceiver {
    url: String,
    connections: Arc<AtomicUsize>,
}

impl HangingReceiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                open.push(connection);
            }
        });
        Self { url, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn create_pickups(client: &ApiClient, count: usize) -> Vec<String> {
    let mut tasks = Vec::new();
    for _ in 0..count {
        let delivery = client.create_delivery(draft()).await;
        tasks.push(iri(&delivery["pickup"]).to_owned());
    }
    tasks
}

async fn receive_ids(receiver: &WebhookReceiver, count: usize) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for _ in 0..count {
        let notification = receiver.next_notification().await;
        ids.insert(notification.header("webhook-id").to_owned());
    }
    ids
}

on_both_databases! {
    /// A hanging receiver has one notification in flight, however many are due; another receiver gets
    /// all of its own meanwhile.
    async fn a_hanging_receiver_does_not_delay_another(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let hanging = HangingReceiver::start().await;
        let mut webhooks = Vec::new();
        let healthy = WebhookReceiver::start().await;
        for url in [hanging.url.as_str(), healthy.url()] {
            webhooks.push(client.create_webhook("delivery.picked", url).await);
        }

        for task in create_pickups(&client, BURST).await {
            courier.complete(&task).await;
        }

        assert_eq!(receive_ids(&healthy, BURST).await.len(), BURST);
        // The second may be in flight once the first has timed out.
        assert!(hanging.connections() <= 2, "{}", hanging.connections());
        assert!(healthy.received().await.is_empty());

        // Its shop sees the failure once the first has timed out.
        let failed = format!("{}/notifications?state=failed", iri(&webhooks[0]));
        let failed = client
            .wait_until(&failed, |page| page["hydra:member"].get(0).cloned())
            .await;
        let mut attempt = client
            .wait_until(iri(&failed), |read| read["attempts"].get(0).cloned())
            .await;
        let took = attempt["milliseconds"].take();
        assert!(took.as_u64() >= Some(15_000), "{took}");
        assert_eq!(
            attempt,
            json!({
                "attemptNumber": 1,
                "endedAt": "2020-04-02T11:00:00+02:00",
                "milliseconds": null,
                "failure": "timeout",
                "statusCode": null,
                "answer": "",
            })
        );
    }

    /// Notifications enqueued while others of their webhook are claimed are neither lost nor
    /// repeated.
    async fn a_burst_of_notifications_is_sent_once_each(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        client.create_webhook("delivery.picked", receiver.url()).await;
        let tasks = create_pickups(&client, BURST).await;

        join_all(tasks.iter().map(|task| courier.complete(task))).await;

        assert_eq!(receive_ids(&receiver, BURST).await.len(), BURST);
        assert!(receiver.received().await.is_empty());
    }
}

/// As above, over two cores with a dispatcher each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_burst_of_notifications_on_two_cores_is_sent_once_each() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let client = platforms[0].client().await;
    let receiver = WebhookReceiver::start().await;
    client
        .create_webhook("delivery.picked", receiver.url())
        .await;
    let tasks = create_pickups(&client, BURST).await;
    let boards = [
        platforms[0].dispatch_board().await,
        platforms[1].dispatch_board().await,
    ];

    join_all(tasks.iter().enumerate().map(|(number, task)| {
        let board = &boards[number % 2];
        async move {
            let done = board
                .put(&format!("{task}/done"), serde_json::json!({}))
                .await;
            assert_eq!(done.status, 200);
        }
    }))
    .await;

    assert_eq!(receive_ids(&receiver, BURST).await.len(), BURST);
    assert!(receiver.received().await.is_empty());
    Platform::stop_both(platforms).await;
}
