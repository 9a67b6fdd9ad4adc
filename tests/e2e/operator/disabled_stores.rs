//! `delivery stores disable` and `enable`: what a disabled store's clients may not do, and what goes on.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::{
    ApiClient, Platform, UNKNOWN_ID, WebhookReceiver, all_in_one::stderr, draft, iri, short_draft,
};

const FORM: [(&str, &str); 1] = [("grant_type", "client_credentials")];

const REFUSED: &str = "the store is disabled: ask the platform's operator to enable it";

on_both_databases! {
    async fn the_clients_of_a_disabled_store_get_no_token_and_no_call_until_it_is_enabled(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let store = platform.store.strip_prefix("stores/").unwrap();
        let shown = platform.run_delivery_json(&["stores", "show", store]).await;
        assert_eq!(shown["disabled_at"], Value::Null);

        let disabled = platform.run_delivery_json(&["stores", "disable", store]).await;

        let mut expected = shown.clone();
        expected["disabled_at"] = json!("2020-04-02T11:00:00+02:00");
        assert_eq!(disabled, expected);
        let rejected = client.request_token(&platform.demo_client, &FORM).await.expect(400);
        let error = json!({
            "error": "unauthorized_client", "error_description": REFUSED, "message": REFUSED,
        });
        assert_eq!(rejected, error);
        let wrong = delivery::Credentials { api_secret: "wrong".to_owned(), ..platform.demo_client.clone() };
        assert_eq!(client.request_token(&wrong, &FORM).await.status, 401);
        assert_is_refused(&client).await;
        assert_eq!(other.get("/api/me").await.status, 200);

        // The second time keeps the first instant.
        platform.advance(SignedDuration::from_secs(1));
        assert_eq!(platform.run_delivery_json(&["stores", "disable", store]).await, disabled);
        assert_eq!(platform.run_delivery_json(&["stores", "list"]).await[0], disabled);
        let renamed = ["stores", "set", store, "--name=Demo shop"];
        assert_eq!(platform.run_delivery_json(&renamed).await, disabled);

        for _ in 0..2 {
            assert_eq!(platform.run_delivery_json(&["stores", "enable", store]).await, shown);
        }
        assert_eq!(client.get("/api/me").await.status, 200);
        assert_eq!(client.request_token(&platform.demo_client, &FORM).await.status, 200);
        client.create_delivery(short_draft()).await;
    }

    async fn what_a_disabled_store_ordered_is_completed(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let receiver = WebhookReceiver::start().await;
        client.create_webhook("delivery.completed", receiver.url()).await;
        let delivery = client.create_delivery(draft()).await;
        let page = delivery["trackingUrl"].as_str().unwrap();
        let page = page.strip_prefix(&platform.base_url).unwrap();

        platform.run_delivery(&["stores", "disable", &platform.store]).await;
        for task in ["pickup", "dropoff"] {
            courier.complete(iri(&delivery[task])).await;
        }

        let notification = receiver.next_notification().await.json();
        assert_eq!(notification["data"]["object"], delivery["@id"]);
        assert_eq!(platform.anonymous_client().get(page).await.status, 200);
        let shown = platform.run_delivery_json(&["deliveries", "show", iri(&delivery)]).await;
        assert_eq!(shown["state"], "COMPLETED");
        assert_is_refused(&client).await;
    }

    async fn only_a_store_that_exists_is_disabled_and_only_by_an_operator(platform: &Platform) {
        for command in ["disable", "enable"] {
            let rejected = platform.run_delivery_output(&["stores", command, UNKNOWN_ID]).await;
            assert_eq!(rejected.status.code(), Some(1));
            assert_eq!(stderr(&rejected), format!("stores/{UNKNOWN_ID} does not exist\n"));
            let arguments = ["stores", command, &platform.store];
            let rejected = platform.run_delivery_as(&platform.demo_client, &arguments).await;
            assert_eq!(rejected.status.code(), Some(1));
        }
        let client = platform.client().await;
        client.create_delivery(short_draft()).await;
    }
}

/// Reads and writes get the same error.
async fn assert_is_refused(client: &ApiClient) {
    for response in [
        client.get("/api/me").await,
        client.get("/api/deliveries").await,
        client.post("/api/deliveries", short_draft()).await,
    ] {
        let error = response.expect(403);
        assert_eq!(
            (&error["code"], &error["detail"]),
            (&json!("store_disabled"), &json!(REFUSED))
        );
    }
}

/// Also a core that did not disable the store refuses its clients within a minute, and serves them again at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_disabled_on_one_core_is_refused_by_every_core_within_a_minute() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let client = second.client().await;
    assert_eq!(client.get("/api/me").await.status, 200);

    first
        .run_delivery(&["stores", "disable", &first.store])
        .await;

    second.advance(SignedDuration::from_mins(1));
    assert_is_refused(&client).await;
    let token = client.request_token(&second.demo_client, &FORM);
    assert_eq!(token.await.expect(400)["error"], "unauthorized_client");
    first
        .run_delivery(&["stores", "enable", &first.store])
        .await;
    assert_eq!(client.get("/api/me").await.status, 200);
    let token = client.request_token(&second.demo_client, &FORM);
    assert_eq!(token.await.status, 200);
    Platform::stop_both([first, second]).await;
}
