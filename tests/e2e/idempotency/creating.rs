//! Creating deliveries and webhooks.

use futures_util::future::join_all;
use hyper::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    CONCURRENT_REQUESTS, assert_in_use, assert_one_effect, assert_one_effect_in_bodies,
    assert_replayed, is_replay, post,
};
use crate::harness::{
    ApiClient, Mismatches, Platform,
    assertions::{assert_error, assert_violations, json_ld},
    definitions::TIME_SLOT,
    run_sql, short_draft as draft,
};

const DELIVERIES: &str = "/api/deliveries";
const WEBHOOKS: &str = "/api/webhooks";

fn subscription() -> Value {
    json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/hook" })
}

/// The number of members of a list.
async fn count(client: &ApiClient, path: &str) -> usize {
    let list = json_ld(&client.get(path).await, 200);
    list["hydra:member"].as_array().unwrap().len()
}

on_both_databases! {
    /// Byte by byte, with `Idempotent-Replayed: true`, even on another day and with another token.
    async fn a_repeated_request_gets_the_first_response(platform: &Platform) {
        let client = platform.client().await;

        let delivery = post(&client, DELIVERIES, "k", &draft()).await;
        let webhook = post(&client, WEBHOOKS, "k", &subscription()).await;
        platform.advance(SignedDuration::from_hours(30));
        let later = platform.client().await;
        let delivery_again = post(&later, DELIVERIES, "k", &draft()).await;
        let webhook_again = post(&later, WEBHOOKS, "k", &subscription()).await;

        json_ld(&delivery, 201);
        let webhook_json = json_ld(&webhook, 201);
        assert_eq!(webhook_json["secret"].as_str().unwrap().len(), 44);
        assert_replayed(&delivery, &delivery_again);
        assert_replayed(&webhook, &webhook_again);
        assert_eq!(count(&later, DELIVERIES).await, 1);
        assert_eq!(count(&later, WEBHOOKS).await, 1);
    }

    async fn concurrent_requests_with_one_key_and_one_reference_create_once(platform: &Platform) {
        let (client, mut draft) = (platform.client().await, draft());
        draft["externalReference"] = json!("42");

        let created = (0..CONCURRENT_REQUESTS).map(|_| post(&client, DELIVERIES, "k", &draft));
        let created = join_all(created).await;
        let other = post(&client, DELIVERIES, "other", &draft).await;

        assert_one_effect(&created, 201);
        assert_eq!(other.json["code"], "external_reference_taken");
    }

    /// Also if only the whitespace of the body differs.
    async fn a_key_with_another_request_is_rejected(platform: &Platform) {
        let client = platform.client().await;
        post(&client, DELIVERIES, "k", &draft()).await.expect(201);
        let mut changed = draft();
        changed["dropoff"]["comments"] = json!("Ring twice");
        let mut mismatches = Mismatches::default();

        for (path, body) in [
            (DELIVERIES, changed.to_string()),
            (DELIVERIES, format!("{} ", draft())),
            (DELIVERIES, "{}".to_owned()),
            (DELIVERIES, "not JSON".to_owned()),
            ("/api/deliveries?x=1", draft().to_string()),
        ] {
            let request = client.request(Method::POST, path).header("idempotency-key", "k");
            let response = client.send(request, body.clone()).await;
            mismatches.check_error(&body, &response, 422);
            mismatches.check_eq(&body, &response.json["code"], &json!("idempotency_key_reused"));
        }

        mismatches.assert_none();
        assert_eq!(count(&client, DELIVERIES).await, 1);
    }

    async fn a_key_is_scoped_to_a_client_and_a_path(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.operator().await;
        let scopes = ["deliveries", "tasks"];
        let other_client = operator.create_client(&platform.store, &scopes).await;
        let other_client = platform.client_for(&other_client, &scopes).await;

        let responses = [
            post(&client, DELIVERIES, "k", &draft()).await,
            post(&client, DELIVERIES, "K", &draft()).await,
            post(&client, WEBHOOKS, "k", &subscription()).await,
            post(&other_client, DELIVERIES, "k", &draft()).await,
            post(&other_client, WEBHOOKS, "k", &subscription()).await,
        ];

        for response in responses {
            assert_eq!(response.status, 201, "{}", response.json);
            assert!(!is_replay(&response));
        }
        assert_eq!(count(&client, DELIVERIES).await, 3);
    }

    async fn a_replay_requires_authorization_like_the_first_request(platform: &Platform) {
        let credentials = platform.operator().await
            .create_client(&platform.store, &["deliveries", "tasks"])
            .await;
        let client = platform.client_for(&credentials, &["deliveries"]).await;
        let tasks_only = platform.client_for(&credentials, &["tasks"]).await;
        post(&client, DELIVERIES, "k", &draft()).await.expect(201);

        let anonymous = post(&platform.anonymous_client(), DELIVERIES, "k", &draft()).await;
        let without_scope = post(&tasks_only, DELIVERIES, "k", &draft()).await;
        platform.operator().await.disable_client(&credentials).await;
        let disabled = post(&client, DELIVERIES, "k", &draft()).await;

        assert_error(&anonymous, 401);
        assert_error(&without_scope, 403);
        assert_error(&disabled, 401);
    }

    /// Only successful responses are stored.
    async fn a_failed_request_does_not_use_its_key(platform: &Platform) {
        let client = platform.client().await;

        let rejected = post(&client, DELIVERIES, "k", &json!({})).await;
        let created = post(&client, DELIVERIES, "k", &draft()).await;

        assert_violations(&rejected, &["dropoff"]);
        assert_eq!(created.status, 201);
        assert!(!is_replay(&created));
    }

    /// A replay books nothing, so it needs no capacity; and a rejected request does not use its key.
    async fn a_full_slot_does_not_prevent_a_replay(platform: &Platform) {
        let definition = format!("{TIME_SLOT}capacity = 1");
        let operator = platform.operator().await;
        operator.apply_time_slot(&platform.store, &definition).await;
        let client = platform.client().await;
        let draft = json!({
            "dropoff": {"address": "48 Rue de Rivoli, Paris", "timeSlot": "2020-04-02 12:00-14:00"}
        });

        let responses = join_all((0..8).map(|_| post(&client, DELIVERIES, "k", &draft))).await;
        let first = responses.iter().find(|response| !is_replay(response)).unwrap();
        for again in responses.iter().filter(|response| is_replay(response)) {
            assert_replayed(first, again);
        }
        let rejected = post(&client, DELIVERIES, "other", &draft).await;
        assert_violations(&rejected, &["dropoff.timeSlot"]);
        client.delete(first.json["@id"].as_str().unwrap()).await.expect(204);
        let after_cancel = post(&client, DELIVERIES, "other", &draft).await;

        assert_eq!(after_cancel.status, 201);
        assert!(!is_replay(&after_cancel));
        assert_eq!(count(&client, DELIVERIES).await, 2);
    }

    async fn a_key_expires_after_seven_days(platform: &Platform) {
        let client = platform.client().await;
        let first = post(&client, DELIVERIES, "k", &draft()).await;

        platform.advance(SignedDuration::from_hours(7 * 24) - SignedDuration::from_secs(1));
        let client = platform.client().await;
        let again = post(&client, DELIVERIES, "k", &draft()).await;
        platform.advance(SignedDuration::from_secs(1));
        let second = post(&client, DELIVERIES, "k", &draft()).await;
        let second_again = post(&client, DELIVERIES, "k", &draft()).await;

        assert_replayed(&first, &again);
        assert_eq!(second.status, 201);
        assert_replayed(&second, &second_again);
        assert_ne!(second.json["@id"], first.json["@id"]);
    }

    /// A key has at most 255 characters, all ASCII.
    async fn a_malformed_key_is_a_violation(platform: &Platform) {
        let client = platform.client().await;
        let longest = "k".repeat(255);

        post(&client, DELIVERIES, &longest, &draft()).await.expect(201);
        for invalid in [format!("{longest}k"), "clé".to_owned(), String::new()] {
            let rejected = post(&client, DELIVERIES, &invalid, &draft()).await;
            assert_violations(&rejected, &["Idempotency-Key"]);
            let rejected = post(&client, WEBHOOKS, &invalid, &json!({})).await;
            assert_violations(&rejected, &["Idempotency-Key", "event", "url"]);
        }

        assert_eq!(count(&client, DELIVERIES).await, 1);
    }

    /// One delivery and one webhook, and as many equal responses as requests.
    async fn concurrent_requests_with_one_key_create_once(platform: &Platform) {
        let client = platform.client().await;
        let (draft, subscription) = (draft(), subscription());

        let (deliveries, webhooks) = tokio::join!(
            join_all((0..CONCURRENT_REQUESTS).map(|_| post(&client, DELIVERIES, "k", &draft))),
            join_all((0..CONCURRENT_REQUESTS).map(|_| post(&client, WEBHOOKS, "k", &subscription))),
        );

        assert_one_effect(&deliveries, 201);
        assert_one_effect(&webhooks, 201);
        assert_eq!(count(&client, DELIVERIES).await, 1);
        assert_eq!(count(&client, WEBHOOKS).await, 1);
    }
}

/// Two cores that share only PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_requests_on_two_cores_create_once() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let clients = [platforms[0].client().await, platforms[1].client().await];

    for key in ["a", "b", "c", "d"] {
        let responses = (0..CONCURRENT_REQUESTS).map(|index| {
            let client = &clients[index % 2];
            async move { post(client, DELIVERIES, key, &draft()).await }
        });
        assert_one_effect_in_bodies(&join_all(responses).await, 201);
    }
    let mut bodies = [draft(), draft()];
    bodies[1]["dropoff"]["comments"] = json!("Ring twice");
    for key in ["e", "f", "g", "h"] {
        let sent = (0..CONCURRENT_REQUESTS).map(|index| {
            let (client, body) = (&clients[index % 2], &bodies[index / 2 % 2]);
            async move { post(client, DELIVERIES, key, body).await }
        });
        let sent = join_all(sent).await.into_iter();
        let (created, reused): (Vec<_>, Vec<_>) = sent.partition(|response| response.status == 201);
        assert_one_effect_in_bodies(&created, 201);
        let half = CONCURRENT_REQUESTS / 2;
        assert_eq!((created.len(), reused.len()), (half, half));
        for response in &reused {
            assert_eq!(response.json["code"], "idempotency_key_reused");
        }
    }
    let subscribed = join_all((0..CONCURRENT_REQUESTS).map(|index| {
        let client = &clients[index % 2];
        async move { post(client, WEBHOOKS, "a", &subscription()).await }
    }));
    assert_one_effect_in_bodies(&subscribed.await, 201);

    assert_eq!(count(&clients[0], DELIVERIES).await, 8);
    assert_eq!(count(&clients[1], WEBHOOKS).await, 1);
    Platform::stop_both(platforms).await;
}

/// Retention would delete it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_key_that_is_not_deleted_yet_is_used_once_more() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let client = platform.client().await;
    let first = post(&client, DELIVERIES, "k", &draft()).await;
    let keep = "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN RETURN NULL; END';
        CREATE TRIGGER keep BEFORE DELETE ON idempotency_keys
            FOR EACH ROW EXECUTE FUNCTION keep()";
    run_sql(&url, keep).await;
    platform.advance(SignedDuration::from_hours(7 * 24));
    let client = platform.client().await;

    let draft = draft();
    let again = (0..CONCURRENT_REQUESTS).map(|_| post(&client, DELIVERIES, "k", &draft));
    let again = join_all(again).await;

    let second = assert_one_effect(&again, 201);
    assert_ne!(second.json["@id"], json_ld(&first, 201)["@id"]);
    platform.stop().await;
}

/// `PostgreSQL`'s lock timeout, without the wait for it; and another error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_too_long_for_another_with_its_key_may_be_repeated() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let client = platform.client().await;
    let fail = |code: &str| {
        format!(
            "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '{code}'; END $$;
             CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON idempotency_keys
             FOR EACH ROW EXECUTE FUNCTION fail()"
        )
    };

    let (lock_not_available, raise_exception) = ("55P03", "P0001");
    run_sql(&url, &fail(lock_not_available)).await;
    let in_use = client.post_with_key(DELIVERIES, "k", &draft()).await;
    run_sql(&url, &fail(raise_exception)).await;
    let failed = client.post_with_key(DELIVERIES, "k", &draft()).await;
    run_sql(&url, "DROP TRIGGER fail ON idempotency_keys").await;
    let created = client.post_with_key(DELIVERIES, "k", &draft()).await;

    assert_in_use(&in_use);
    assert_eq!(failed.status, 500, "{}", failed.json);
    json_ld(&created, 201);
    assert_eq!(count(&client, DELIVERIES).await, 1);
    platform.stop().await;
}
