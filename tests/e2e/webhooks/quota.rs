//! The quota of webhooks: at most 100 per client.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::iri;
use crate::harness::{ApiClient, Database, Platform, Response, assertions::assert_error, run_sql};

const WEBHOOKS: &str = "/api/webhooks";
const QUOTA: usize = 100;
const CONCURRENT: usize = 8;

/// Holds every insert until all the concurrent requests wait.
const HOLD_INSERTS: &str = "
    LOCK TABLE webhooks IN SHARE MODE;
    DO $$
    DECLARE
        waiting int := 0;
    BEGIN
        FOR poll IN 1..80 LOOP
            PERFORM pg_stat_clear_snapshot();
            waiting := count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock';
            EXIT WHEN waiting >= 8;
            PERFORM pg_sleep(0.1);
        END LOOP;
        ASSERT waiting >= 8, waiting;
    END $$";

const IS_HELD: &str = "
    SELECT count(*) > 0 FROM pg_locks
    WHERE granted AND mode = 'ShareLock' AND relation = 'webhooks'::regclass";

on_both_databases! {
    async fn a_client_has_at_most_100_webhooks(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.operator().await;
        let other_client = operator.create_client(&platform.store, &["deliveries"]).await;
        let other_client = platform.client_for(&other_client, &["deliveries"]).await;

        let webhooks = create(&client, QUOTA).await;

        assert_exhausted(&register(&client).await);
        register(&other_client).await.expect(201);
        client.delete(iri(&webhooks[0])).await.expect(204);
        register(&client).await.expect(201);
        assert_exhausted(&register(&client).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_do_not_exceed_the_quota_on_sqlite() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    create(&client, QUOTA - 1).await;

    let responses = join_all((0..CONCURRENT).map(|_| register(&client))).await;

    assert_one_created(&client, &responses).await;
    platform.stop().await;
}

/// Every request is in its transaction before the first of them ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_do_not_exceed_the_quota_on_postgres() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let client = platform.client().await;
    create(&client, QUOTA - 1).await;
    let held = tokio::spawn({
        let url = url.clone();
        async move { run_sql(&url, HOLD_INSERTS).await }
    });
    wait_until_held(&url).await;

    let responses = join_all((0..CONCURRENT).map(|_| register(&client))).await;

    held.await.unwrap();
    assert_one_created(&client, &responses).await;
    platform.stop().await;
}

async fn wait_until_held(url: &str) {
    for _ in 0..600 {
        if run_sql(url, IS_HELD).await == "t\n" {
            return;
        }
    }
    panic!("the table is not locked");
}

/// Fails unless one request was accepted, and the others were rejected because of the quota.
async fn assert_one_created(client: &ApiClient, responses: &[Response]) {
    let rejected: Vec<_> = responses
        .iter()
        .filter(|response| response.status != 201)
        .collect();
    assert_eq!(
        (responses.len(), rejected.len()),
        (CONCURRENT, CONCURRENT - 1)
    );
    for response in rejected {
        assert_exhausted(response);
    }
    let listed = client.get(WEBHOOKS).await.expect(200);
    assert_eq!(listed["hydra:member"].as_array().unwrap().len(), QUOTA);
}

async fn create(client: &ApiClient, count: usize) -> Vec<Value> {
    let mut webhooks = Vec::new();
    for _ in 0..count {
        webhooks.push(register(client).await.expect(201));
    }
    webhooks
}

async fn register(client: &ApiClient) -> Response {
    let body = json!({ "event": "delivery.completed", "url": "https://example.com/" });
    client.post(WEBHOOKS, body).await
}

/// Fails unless the whole response is the error of an exhausted quota.
#[track_caller]
fn assert_exhausted(response: &Response) {
    assert_error(response, 429);
    let detail = "a client has at most 100 webhooks; delete one first";
    for (member, expected) in [
        ("code", "too_many_webhooks"),
        ("title", "Too many webhooks"),
        ("detail", detail),
        ("hydra:description", detail),
    ] {
        assert_eq!(response.json[member], expected, "{member}");
    }
    assert_eq!(response.header("retry-after"), "60");
}
