//! Guarantees across several cores, gateways and dispatchers.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use proto::task::Status;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    SLACK, all_processors,
    api_client::ApiClient,
    caller::{Caller, iri},
    cluster::Cluster,
    counting_receiver::{CountingReceiver, Received},
    courier::Courier,
    failure::Failure,
    webhook_receiver::WebhookReceiver,
};

/// The number of deliveries whose two tasks are completed at the same instant.
const RACES: usize = 500;

/// The number of concurrent races.
const CONCURRENCY: usize = 16;

/// The number of deliveries read immediately after a write.
const READS: usize = 50;

/// The longest wait for an unreachable core: a gateway checks each core every 500 ms, with a timeout
/// of 1 s.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest wait for an identical request with the same idempotency key.
const KEY_TIMEOUT: Duration = Duration::from_secs(2);

/// A read that waits longer was held by the stopped core.
const HELD: Duration = Duration::from_millis(750);

/// Far longer than the notifications take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// After 2 s, with `Retry-After: 1`: until then the request waits for the one that has the key. A
/// later request with the key succeeds, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_too_long_for_an_identical_one_gets_409() {
    let _processors = all_processors().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;

    // Another request that has the same key, and takes its time.
    let other = cluster.postgres.session(
        r"BEGIN;
        INSERT INTO idempotency_keys
            (store_id, api_client_id, key_hash, request_hash, encrypted_response, created_at)
            SELECT store_id, id, sha256(convert_to(E'CreateDelivery\nheld', 'UTF8')), '', '', 0
            FROM api_clients WHERE store_id IS NOT NULL;
        SELECT 'held';
        SELECT pg_sleep(600);",
    );
    other.wait_for("held").await;
    let sent = Instant::now();
    let rejected = shop.create_delivery_with_key("held").await.err();
    let waited = sent.elapsed();
    let end_other =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    cluster.postgres.sql(end_other);
    let first = shop.create_delivery_with_key("held").await.unwrap();
    let again = shop.create_delivery_with_key("held").await.unwrap();

    let Some(Failure::ErrorResponse {
        status,
        retry_after,
        body,
    }) = rejected
    else {
        panic!("{rejected:?}");
    };
    assert_eq!((status, retry_after), (409, Some(1)), "{body}");
    assert!(
        body.contains("\"code\":\"idempotency_key_in_use\""),
        "{body}"
    );
    assert!(
        (KEY_TIMEOUT..KEY_TIMEOUT + SLACK).contains(&waited),
        "{waited:?}"
    );
    assert_eq!(first, again);
    assert_eq!(shop.deliveries().await.unwrap().len(), 1);
}

/// The specification's journey, each step through another gateway or core than the previous.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_journey_works_across_all_processes() {
    let _processors = all_processors().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let receiver = WebhookReceiver::start().await;
    let scopes = ["deliveries", "tasks"];
    let credentials = &cluster.shop_client;
    let [first, second] = &cluster.gateway_urls;
    let first = ApiClient::authorized(first, credentials, &scopes).await;
    let second = ApiClient::new(second).with_token(first.token());

    let choices = first.get("/api/time_slots/choices").await.expect(200);
    let draft = json!({
        "dropoff": {
            "address": "48 Rue de Rivoli, 75004 Paris",
            "timeSlot": choices["choices"][0]["value"],
        },
    });
    let price = second
        .post("/api/retail_prices/calculate", draft.clone())
        .await
        .expect(200);
    assert_eq!(
        (&price["amount"], &price["tax"]["amount"]),
        (&json!(499), &json!(83))
    );
    let webhook = first
        .create_webhook("delivery.completed", receiver.url())
        .await;
    let delivery = second.create_delivery(draft).await;
    let couriers = couriers(&cluster).await;
    for (task, courier) in ["pickup", "dropoff"].into_iter().zip(&couriers) {
        let task = iri(&delivery[task]);
        let read = first.get(task).await.expect(200);
        assert_eq!(
            (&read["@type"], &read["status"]),
            (&json!("Task"), &json!("TODO"))
        );
        courier.complete(task).await;
        assert_eq!(second.get(task).await.expect(200)["status"], "DONE");
    }

    let notification = receiver.next_notification().await;
    assert_eq!(
        notification.json(),
        json!({ "data": { "object": delivery["@id"], "event": "delivery.completed" } })
    );
    assert!(notification.is_signed_with(webhook["secret"].as_str().unwrap()));
}

/// "Completion of a delivery emits the event `delivery.completed`": exactly one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_tasks_at_the_same_instant_on_different_cores_complete_a_delivery_once() {
    let _processors = all_processors().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;
    let receiver = CountingReceiver::subscribed(&shop).await;
    let couriers = couriers(&cluster).await;

    let mut races = JoinSet::new();
    for _ in 0..CONCURRENCY {
        races.spawn(race(
            shop.clone(),
            couriers.clone(),
            RACES.div_ceil(CONCURRENCY),
        ));
    }
    let completed: BTreeSet<String> = races.join_all().await.into_iter().flatten().collect();

    let all = |received: &Received| received.missing(&completed).is_empty();
    assert!(
        receiver.wait(TIMEOUT, all).await,
        "notifications are missing"
    );
    // The last notification is sent after all that were enqueued before it.
    let last = race(shop, couriers, 1).await;
    let [last] = last.as_slice() else {
        unreachable!()
    };
    let has_last = |received: &Received| received.deliveries.contains_key(last);
    assert!(receiver.wait(TIMEOUT, has_last).await);
    let notified = receiver.received();
    assert!(completed.len() >= RACES);
    assert_eq!(notified.total, completed.len() + 1);
    assert!(notified.notified_twice().is_empty());
    crate::report(&format!(
        "{} deliveries completed by two cores at once: {} events",
        completed.len(),
        notified.total - 1
    ));
}

/// Every core reads what any core has acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_acknowledged_by_one_core_is_visible_on_every_core() {
    let _processors = all_processors().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;
    let couriers = couriers(&cluster).await;

    for number in 0..READS {
        // Created by either core.
        let delivery = shop.create_delivery().await.unwrap();
        let task = iri(&delivery["dropoff"]);
        for courier in &couriers {
            assert_eq!(courier.read(task).await.status(), Status::Todo);
        }
        couriers[number % 2].complete(task).await;
        assert_eq!(
            couriers[1 - number % 2].read(task).await.status(),
            Status::Done
        );
        assert_eq!(shop.get(task).await.unwrap()["status"], "DONE");
    }
}

/// One of two cores is stopped (SIGSTOP): a read that it holds is answered by the other core, and
/// later ones go there first. The stopped core is used again once it responds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_core_delays_reads_by_two_seconds_at_most_until_it_responds() {
    let _processors = all_processors().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;
    let delivery = shop.create_delivery().await.unwrap();
    let task = iri(&delivery["dropoff"]);

    cluster.cores[0].signal("-STOP");
    let mut waits = Vec::with_capacity(READS);
    for _ in 0..READS {
        let sent = Instant::now();
        shop.get(task).await.unwrap();
        waits.push(sent.elapsed());
    }
    cluster.cores[0].signal("-CONT");
    cluster.cores[1].kill();
    let waited = Instant::now();
    while let Err(failure) = shop.get(task).await {
        assert!(
            waited.elapsed() < UNREACHABLE_TIMEOUT + SLACK,
            "the first core is not used again: {failure}"
        );
    }

    waits.sort_unstable();
    waits.reverse();
    crate::report(&format!(
        "one of two cores stopped: {READS} reads, the slowest after {:?}",
        &waits[..4]
    ));
    assert!(waits[0] < UNREACHABLE_TIMEOUT + SLACK, "{waits:?}");
    // If gateways did not mark the core as down, every second read would wait.
    let held = waits.iter().filter(|wait| **wait > HELD).count();
    assert!((1..=READS / 10).contains(&held), "{held} of {waits:?}");
}

/// Creates deliveries and completes both tasks of each at once, on different cores.
async fn race(shop: Caller, couriers: [Courier; 2], count: usize) -> Vec<String> {
    let mut completed = Vec::new();
    for _ in 0..count {
        let delivery = shop.create_delivery().await.unwrap();
        let (pickup, dropoff) = tokio::join!(
            couriers[0].complete(iri(&delivery["pickup"])),
            couriers[1].complete(iri(&delivery["dropoff"])),
        );
        assert_eq!(
            (pickup.status(), dropoff.status()),
            (Status::Done, Status::Done)
        );
        completed.push(iri(&delivery).to_owned());
    }
    completed
}

/// A courier's app for each core.
async fn couriers(cluster: &Cluster) -> [Courier; 2] {
    let [first, second] = &cluster.core_urls;
    [
        Courier::authorized(first, &cluster.operator_client).await,
        Courier::authorized(second, &cluster.operator_client).await,
    ]
}
