//! Receivers that don't answer hold up nobody else, and what is owed in a rush is told once.

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

use super::{iri, order};
use crate::harness::{ApiClient, Platform, Twin, WebhookReceiver};

/// How many deliveries a rush has.
const RUSH: usize = 60;

/// A receiver that takes connections and never answers.
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

async fn pickups(client: &ApiClient, count: usize) -> Vec<String> {
    let mut tasks = Vec::new();
    for _ in 0..count {
        let delivery = client.create_delivery(order()).await;
        tasks.push(iri(&delivery["pickup"]).to_owned());
    }
    tasks
}

async fn ids_of(receiver: &WebhookReceiver, count: usize) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for _ in 0..count {
        let notification = receiver.next_notification().await;
        ids.insert(notification.header("webhook-id").to_owned());
    }
    ids
}

on_both_databases! {
    /// One that never answers has one notification on its way, whatever is due to it; another is
    /// told all of its own meanwhile.
    async fn a_receiver_that_hangs_does_not_hold_up_another(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let hanging = HangingReceiver::start().await;
        let mut webhooks = Vec::new();
        let healthy = WebhookReceiver::start().await;
        for url in [hanging.url.as_str(), healthy.url()] {
            webhooks.push(client.create_webhook("delivery.picked", url).await);
        }

        for task in pickups(&client, RUSH).await {
            courier.complete(&task).await;
        }

        assert_eq!(ids_of(&healthy, RUSH).await.len(), RUSH);
        // A second one would be on its way once the first is given up, which takes a while.
        assert!(hanging.connections() <= 2, "{}", hanging.connections());
        assert!(healthy.so_far().await.is_empty());

        // Its shop sees why, once the first is given up.
        let failed = format!("{}/notifications?state=failed", iri(&webhooks[0]));
        let failed = client
            .until(&failed, |page| page["hydra:member"].get(0).cloned())
            .await;
        let mut attempt = client
            .until(iri(&failed), |read| read["attempts"].get(0).cloned())
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

    /// Those that come to be owed while a webhook's turn comes and goes are neither forgotten
    /// nor told twice.
    async fn what_is_owed_in_a_rush_is_told_once(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        client.create_webhook("delivery.picked", receiver.url()).await;
        let tasks = pickups(&client, RUSH).await;

        join_all(tasks.iter().map(|task| courier.complete(task))).await;

        assert_eq!(ids_of(&receiver, RUSH).await.len(), RUSH);
        assert!(receiver.so_far().await.is_empty());
    }
}

/// As above, over two cores that each have a dispatcher.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_owed_in_a_rush_on_two_cores_is_told_once() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let client = twins[0].client().await;
    let receiver = WebhookReceiver::start().await;
    client
        .create_webhook("delivery.picked", receiver.url())
        .await;
    let tasks = pickups(&client, RUSH).await;
    let boards = [
        twins[0].dispatch_board().await,
        twins[1].dispatch_board().await,
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

    assert_eq!(ids_of(&receiver, RUSH).await.len(), RUSH);
    assert!(receiver.so_far().await.is_empty());
    for twin in twins {
        twin.stop().await;
    }
}
