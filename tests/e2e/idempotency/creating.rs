//! What creates something: deliveries and webhooks.

use futures_util::future::join_all;
use hyper::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{TWINS, assert_again, assert_one, assert_one_body, is_replay, post};
use crate::harness::{
    ApiClient, Faults, Platform, Twin,
    assertions::{assert_error, assert_violations, json_ld},
};

const DELIVERIES: &str = "/api/deliveries";
const WEBHOOKS: &str = "/api/webhooks";

fn order() -> Value {
    json!({
        "dropoff": { "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" }
    })
}

fn subscription() -> Value {
    json!({ "event": "delivery.completed", "url": "http://127.0.0.1:9/hook" })
}

/// How many members a list shows.
async fn count(client: &ApiClient, path: &str) -> usize {
    let list = client.get(&format!("{path}?itemsPerPage=100")).await;
    let list = json_ld(&list, 200);
    list["hydra:member"].as_array().unwrap().len()
}

on_both_databases! {
    /// "the same body again → the first answer with `Idempotent-Replayed: true`", byte by byte,
    /// though meanwhile tomorrow is another day and the token another one.
    async fn the_same_request_again_has_the_first_answer(platform: &Platform) {
        let client = platform.client().await;

        let delivery = post(&client, DELIVERIES, "k", &order()).await;
        let webhook = post(&client, WEBHOOKS, "k", &subscription()).await;
        platform.advance(SignedDuration::from_hours(30));
        let later = platform.client().await;
        let delivery_again = post(&later, DELIVERIES, "k", &order()).await;
        let webhook_again = post(&later, WEBHOOKS, "k", &subscription()).await;

        json_ld(&delivery, 201);
        let webhook_json = json_ld(&webhook, 201);
        assert_eq!(webhook_json["secret"].as_str().unwrap().len(), 44);
        assert_again(&delivery, &delivery_again);
        assert_again(&webhook, &webhook_again);
        assert_eq!(count(&later, DELIVERIES).await, 1);
        assert_eq!(count(&later, WEBHOOKS).await, 1);
    }

    /// "another body → 422 `idempotency_key_reused`"; so is one that only looks different.
    async fn a_key_is_for_one_request_alone(platform: &Platform) {
        let client = platform.client().await;
        post(&client, DELIVERIES, "k", &order()).await.expect(201);
        let mut otherwise = order();
        otherwise["dropoff"]["comments"] = json!("Ring twice");
        let mut faults = Faults::default();

        for (path, body) in [
            (DELIVERIES, otherwise.to_string()),
            (DELIVERIES, format!("{} ", order())),
            (DELIVERIES, "{}".to_owned()),
            (DELIVERIES, "no JSON".to_owned()),
            ("/api/deliveries?x=1", order().to_string()),
        ] {
            let request = client.request(Method::POST, path).header("idempotency-key", "k");
            let answer = client.send(request, body.clone()).await;
            faults.failure(&body, &answer, 422);
            faults.equal(&body, &answer.json["code"], &json!("idempotency_key_reused"));
        }

        faults.none();
        assert_eq!(count(&client, DELIVERIES).await, 1);
    }

    /// "scope client + method + path".
    async fn a_key_is_one_clients_and_one_addresss(platform: &Platform) {
        let client = platform.client().await;
        let operator = platform.operator().await;
        let scopes = ["deliveries", "tasks"];
        let colleague = operator.create_client(&platform.store, &scopes).await;
        let colleague = platform.client_of(&colleague, &scopes).await;

        let answers = [
            post(&client, DELIVERIES, "k", &order()).await,
            post(&client, DELIVERIES, "K", &order()).await,
            post(&client, WEBHOOKS, "k", &subscription()).await,
            post(&colleague, DELIVERIES, "k", &order()).await,
            post(&colleague, WEBHOOKS, "k", &subscription()).await,
        ];

        for answer in answers {
            assert_eq!(answer.status, 201, "{}", answer.json);
            assert!(!is_replay(&answer));
        }
        assert_eq!(count(&client, DELIVERIES).await, 3);
    }

    /// Who may not ask may not be answered again either.
    async fn nobody_is_answered_again_who_may_not_ask(platform: &Platform) {
        let credentials = platform.operator().await
            .create_client(&platform.store, &["deliveries", "tasks"])
            .await;
        let client = platform.client_of(&credentials, &["deliveries"]).await;
        let tasks_alone = platform.client_of(&credentials, &["tasks"]).await;
        post(&client, DELIVERIES, "k", &order()).await.expect(201);

        let stranger = post(&platform.stranger(), DELIVERIES, "k", &order()).await;
        let without_scope = post(&tasks_alone, DELIVERIES, "k", &order()).await;
        platform.disable(&credentials).await;
        let disabled = post(&client, DELIVERIES, "k", &order()).await;

        assert_error(&stranger, 401);
        assert_error(&without_scope, 403);
        assert_error(&disabled, 401);
    }

    /// "only successes are kept".
    async fn a_request_that_failed_leaves_its_key_free(platform: &Platform) {
        let client = platform.client().await;

        let refused = post(&client, DELIVERIES, "k", &json!({})).await;
        let created = post(&client, DELIVERIES, "k", &order()).await;

        assert_violations(&refused, &["dropoff"]);
        assert_eq!(created.status, 201);
        assert!(!is_replay(&created));
    }

    /// A replay asks for nothing, so it needs no place; and who is refused one keeps the key.
    async fn a_full_slot_does_not_stand_in_the_way_of_a_replay(platform: &Platform) {
        let definition = "name = \"Tour\"\nopening_hours = [\"Mo-Su 12:00-14:00\"]\n\
            interval = \"2 days\"\ncapacity = 1\n";
        let operator = platform.operator().await;
        operator.apply_time_slot(&platform.store, definition).await;
        let client = platform.client().await;
        let order = json!({
            "dropoff": {"address": "48 Rue de Rivoli, Paris", "timeSlot": "2020-04-02 12:00-14:00"}
        });

        let answers = join_all((0..8).map(|_| post(&client, DELIVERIES, "k", &order))).await;
        let first = answers.iter().find(|answer| !is_replay(answer)).unwrap();
        for again in answers.iter().filter(|answer| is_replay(answer)) {
            assert_again(first, again);
        }
        let refused = post(&client, DELIVERIES, "other", &order).await;
        assert_violations(&refused, &["dropoff.timeSlot"]);
        client.delete(first.json["@id"].as_str().unwrap()).await.expect(204);
        let now_free = post(&client, DELIVERIES, "other", &order).await;

        assert_eq!(now_free.status, 201);
        assert!(!is_replay(&now_free));
        assert_eq!(count(&client, DELIVERIES).await, 2);
    }

    /// "7 days".
    async fn a_key_is_free_again_after_seven_days(platform: &Platform) {
        let client = platform.client().await;
        let first = post(&client, DELIVERIES, "k", &order()).await;

        platform.advance(SignedDuration::from_hours(7 * 24) - SignedDuration::from_secs(1));
        let client = platform.client().await;
        let again = post(&client, DELIVERIES, "k", &order()).await;
        platform.advance(SignedDuration::from_secs(1));
        let anew = post(&client, DELIVERIES, "k", &order()).await;
        let anew_again = post(&client, DELIVERIES, "k", &order()).await;

        assert_again(&first, &again);
        assert_eq!(anew.status, 201);
        assert_again(&anew, &anew_again);
        assert_ne!(anew.json["@id"], first.json["@id"]);
    }

    /// "≤ 255 characters".
    async fn a_malformed_key_is_a_violation(platform: &Platform) {
        let client = platform.client().await;
        let longest = "k".repeat(255);

        post(&client, DELIVERIES, &longest, &order()).await.expect(201);
        for wrong in [format!("{longest}k"), "clé".to_owned(), String::new()] {
            let refused = post(&client, DELIVERIES, &wrong, &order()).await;
            assert_violations(&refused, &["Idempotency-Key"]);
            let refused = post(&client, WEBHOOKS, &wrong, &json!({})).await;
            assert_violations(&refused, &["Idempotency-Key", "event", "url"]);
        }

        assert_eq!(count(&client, DELIVERIES).await, 1);
    }

    /// "64 simultaneous requests with one key: one delivery, 64 equal answers".
    async fn simultaneous_requests_with_one_key_create_once(platform: &Platform) {
        let client = platform.client().await;
        let (order, subscription) = (order(), subscription());

        let (deliveries, webhooks) = tokio::join!(
            join_all((0..TWINS).map(|_| post(&client, DELIVERIES, "k", &order))),
            join_all((0..TWINS).map(|_| post(&client, WEBHOOKS, "k", &subscription))),
        );

        assert_one(&deliveries, 201);
        assert_one(&webhooks, 201);
        assert_eq!(count(&client, DELIVERIES).await, 1);
        assert_eq!(count(&client, WEBHOOKS).await, 1);
    }
}

/// Two cores share nothing but PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simultaneous_requests_at_two_cores_create_once() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let clients = [twins[0].client().await, twins[1].client().await];

    for key in ["a", "b", "c", "d"] {
        let answers = (0..TWINS).map(|turn| {
            let client = &clients[turn % 2];
            async move { post(client, DELIVERIES, key, &order()).await }
        });
        assert_one_body(&join_all(answers).await, 201);
    }
    let subscribed = join_all((0..TWINS).map(|turn| {
        let client = &clients[turn % 2];
        async move { post(client, WEBHOOKS, "a", &subscription()).await }
    }));
    assert_one_body(&subscribed.await, 201);

    assert_eq!(count(&clients[0], DELIVERIES).await, 4);
    assert_eq!(count(&clients[1], WEBHOOKS).await, 1);
    for twin in twins {
        twin.stop().await;
    }
}
