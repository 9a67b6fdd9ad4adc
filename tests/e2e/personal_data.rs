//! Erasing the personal data of deliveries: by an operator's command, or after the retention.

use std::time::Duration;

use jiff::SignedDuration;
use proto::{CompleteTaskRequest, iri, tasks_client::TasksClient};
use serde_json::{Value, json};

use crate::harness::{
    ApiClient, Database, Platform, Response, WebhookReceiver, grpc, iri, stored_text,
};

/// In every text that identifies a person.
const MARK: &str = "Xyzzy";
const TELEPHONE: &str = "+33612345678";

fn task() -> Value {
    json!({
        "address": {
            "streetAddress": format!("24 Rue {MARK}, 75011 Paris"),
            "latLng": [48.853_123, 2.369_876],
            "name": format!("Chez {MARK}"),
            "contactName": format!("Zoé {MARK}"),
            "telephone": TELEPHONE,
            "description": format!("Code {MARK}").repeat(500),
            "postalCode": "75011",
            "addressLocality": "Paris",
            "addressCountry": "FR",
        },
        "before": "tomorrow 13:00",
        "comments": format!("Ring at {MARK}'s").repeat(300),
        "tags": [MARK],
        "metadata": { "customer": MARK },
        "weight": 1200,
        "packages": [{ "type": "XL", "quantity": 2 }],
    })
}

fn draft() -> Value {
    let mut pickup = task();
    pickup["before"] = json!("tomorrow 12:00");
    json!({ "pickup": pickup, "dropoff": task(), "externalReference": "order 7" })
}

/// The delivery, or its task, as it is once erased.
fn erased(resource: &Value) -> Value {
    let mut resource = resource.clone();
    if let Some(url) = resource.get_mut("trackingUrl") {
        *url = Value::Null;
    }
    for task in ["pickup", "dropoff"] {
        if resource[task].is_object() {
            resource[task] = erased(&resource[task]);
        }
    }
    if let Some(address) = resource.get_mut("address") {
        address["streetAddress"] = json!("(erased)");
        address["geo"]["latitude"] = json!(48.85);
        address["geo"]["longitude"] = json!(2.37);
        for member in ["name", "contactName", "telephone", "description"] {
            address[member] = json!(null);
        }
        resource["comments"] = json!("");
        resource["tags"] = json!([]);
        resource["metadata"] = json!({});
    }
    resource
}

async fn create_with_key(client: &ApiClient) -> Response {
    client
        .post_with_key("/api/deliveries", "order-7", &draft())
        .await
}

/// A delivery with an address given as text, without a telephone number.
async fn create_other(client: &ApiClient) -> Value {
    let dropoff = json!({
        "address": "48 Rue de Rivoli, 75004 Paris",
        "before": "in 14 days",
        "comments": "Second floor",
    });
    client.create_delivery(json!({ "dropoff": dropoff })).await
}

on_both_databases! {
    async fn erasing_a_delivery_leaves_no_personal_data_and_keeps_the_rest(platform: &Platform) {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        receiver.respond_with_body(500, "for Xyzzy");
        let webhook = client.create_webhook("delivery.picked", receiver.url()).await;
        let created = create_with_key(&client).await.expect(201);
        let other = create_other(&client).await;
        let (channel, token) = platform.connect(&["tasks:all"]).await;
        let done = CompleteTaskRequest {
            name: iri::name(iri(&created["pickup"])).to_owned(),
            notes: format!("{MARK} was asleep"),
            contact_name: format!("Zoé {MARK}"),
            ..CompleteTaskRequest::default()
        };
        let done = TasksClient::new(channel).complete_task(grpc::with_token(&token, done)).await;
        done.unwrap();
        receiver.next_notification().await;
        let reason = format!("--reason={MARK}_SLEEPS");
        let fail = ["tasks", "fail", iri(&created["dropoff"]), &reason, "--idempotency-key=k"];
        let failed = platform.run_delivery_json(&fail).await;
        assert_eq!(failed["failure_reason"], format!("{MARK}_SLEEPS"));
        let notifications = format!("{}/notifications", iri(&webhook));
        let first = |page: Value| page["hydra:member"].get(0).cloned();
        let notification = client.wait_until(&notifications, first).await;
        let answer = |notification: Value| notification["attempts"][0]["answer"].as_str().map(str::to_owned);
        assert_eq!(client.wait_until(iri(&notification), answer).await, "for Xyzzy");
        let before = client.get(iri(&created)).await.expect(200);
        assert!(stored_text(platform).await.contains(MARK));

        for _ in 0..2 {
            let arguments = ["erase", "--delivery", iri(&created)];
            let printed = platform.run_delivery_json(&arguments).await;
            assert_eq!(printed, json!([{ "delivery": iri(&created) }]));
        }

        assert_eq!(client.get(iri(&created)).await.expect(200), erased(&before));
        let notification = client.get(iri(&notification)).await.expect(200);
        assert_eq!(notification["attempts"][0]["answer"], "");
        for (task, event, data) in [
            ("pickup", "task:done", json!({})),
            ("dropoff", "task:failed", json!({"reason": "OTHER"})),
        ] {
            let task = client.get(iri(&created[task])).await.expect(200);
            assert_eq!(task["address"]["streetAddress"], "(erased)");
            let history = client.get(&format!("{}/events", iri(&task))).await.expect(200);
            let last = &history["hydra:member"][1];
            assert_eq!((&last["name"], &last["data"]), (&json!(event), &data));
        }
        assert_eq!(create_with_key(&client).await.expect(201), erased(&created));
        let replayed = platform.run_delivery_json(&fail).await;
        assert_eq!(replayed["failure_reason"], "OTHER");
        assert!(!replayed.to_string().contains(MARK), "{replayed}");
        assert_eq!(client.get(iri(&other)).await.expect(200), other);
        let stored = stored_text(platform).await;
        assert!(!stored.contains(MARK));
        assert!(!stored.contains(TELEPHONE));
        assert!(stored.contains("Second floor"));
    }

    /// There are more deliveries than one call to core erases.
    async fn every_delivery_for_a_telephone_number_is_erased(platform: &Platform) {
        let client = platform.client().await;
        let mut draft = draft();
        draft.as_object_mut().unwrap().remove("externalReference");
        let mut matching = Vec::new();
        for _ in 0..12 {
            matching.push(client.create_delivery(draft.clone()).await);
        }
        let other_telephone = "+33612345679";
        draft["pickup"]["address"]["telephone"] = json!(other_telephone);
        matching.push(client.create_delivery(draft.clone()).await);
        draft["dropoff"]["address"]["telephone"] = json!(other_telephone);
        let others = [client.create_delivery(draft).await, create_other(&client).await];
        let listed = |deliveries: &[Value]| -> Value {
            deliveries.iter().map(|delivery| json!({ "delivery": iri(delivery) })).collect()
        };
        let erase = async |flags: &[&str]| {
            let arguments = [&["erase", "--telephone", "06 12 34 56 78"], flags].concat();
            platform.run_delivery_json(&arguments).await
        };

        assert_eq!(erase(&["--dry-run"]).await, listed(&matching));
        assert_eq!(client.get(iri(&matching[0])).await.expect(200), matching[0]);
        assert_eq!(erase(&[]).await, listed(&matching));

        assert_eq!(erase(&[]).await, json!([]));
        for delivery in &matching {
            assert_eq!(client.get(iri(delivery)).await.expect(200), erased(delivery));
        }
        for delivery in &others {
            assert_eq!(client.get(iri(delivery)).await.expect(200), *delivery);
        }
    }

    async fn a_delivery_or_a_telephone_number_is_required(platform: &Platform) {
        let unknown = "00000000-0000-0000-0000-000000000001";
        for (arguments, status, error) in [
            (&["--delivery", unknown][..], 1, "deliveries/00000000-0000-0000-0000-000000000001 does not exist"),
            (&["--telephone", "six"], 1, "did not seem to be a phone number"),
            (&["--telephone", " "], 1, "telephone: is required"),
            (&[], 2, "--delivery <ID>"),
            (&["--delivery", unknown, "--telephone", TELEPHONE], 2, "cannot be used with"),
        ] {
            let arguments = [&["erase"], arguments].concat();
            let output = platform.run_delivery_output(&arguments).await;
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(errors.contains(error), "{arguments:?}: {errors}");
            assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        }
    }
}

async fn assert_retained_for_7_days(database: Database) {
    let platform = Platform::start_with(database, |settings| {
        settings.deliveries.delivery_retention = Some(Duration::from_hours(7 * 24));
    })
    .await;
    let client = platform.client().await;
    // The dropoff of the first ends on the next day, that of the other in 14 days.
    let first = client.create_delivery(draft()).await;
    let other = create_other(&client).await;

    platform.advance(SignedDuration::from_hours(8 * 24));
    let client = platform.client().await;
    assert_eq!(client.get(iri(&first)).await.expect(200), first);
    let late = create_other(&client).await;
    platform.advance(SignedDuration::from_hours(3));

    let client = platform.client().await;
    let expected = erased(&first);
    let is_erased = |delivery: Value| (delivery == expected).then_some(());
    client.wait_until(iri(&first), is_erased).await;
    for delivery in [&other, &late] {
        assert_eq!(client.get(iri(delivery)).await.expect(200), *delivery);
    }
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_erased_after_its_retention_on_sqlite() {
    assert_retained_for_7_days(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_is_erased_after_its_retention_on_postgres() {
    if let Some(database) = Database::postgres() {
        assert_retained_for_7_days(database).await;
    }
}

async fn assert_removed_after_20_days(database: Database) {
    let platform = Platform::start_with(database, |settings| {
        settings.deliveries.delivery_retention = Some(Duration::from_hours(7 * 24));
        settings.deliveries.event_retention = Duration::from_hours(7 * 24);
        settings.deliveries.delivery_removal = Some(Duration::from_hours(20 * 24));
    })
    .await;
    let client = platform.client().await;
    // The dropoff of the first ends on the next day, that of the other in 14 days.
    let first = client.create_delivery(draft()).await;
    let other = create_other(&client).await;
    platform.advance(SignedDuration::from_hours(9 * 24));
    let client = platform.client().await;
    let expected = erased(&first);
    let is_erased = |delivery: Value| (delivery == expected).then_some(());
    client.wait_until(iri(&first), is_erased).await;

    platform.advance(SignedDuration::from_hours(13 * 24));

    let client = platform.client().await;
    let only_other = |page: Value| (page["hydra:member"].as_array()?.len() == 1).then_some(page);
    let page = client.wait_until("/api/deliveries", only_other).await;
    assert_eq!(page["hydra:member"][0]["@id"], other["@id"]);
    for removed in [&first, &first["pickup"], &first["dropoff"]] {
        client.get(iri(removed)).await.expect(404);
    }
    let history = format!("{}/events", iri(&first["pickup"]));
    client.get(&history).await.expect(404);
    // The reference is free again.
    create_with_key(&client).await.expect(201);
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_delivery_is_404_and_in_no_list_on_sqlite() {
    assert_removed_after_20_days(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_delivery_is_404_and_in_no_list_on_postgres() {
    if let Some(database) = Database::postgres() {
        assert_removed_after_20_days(database).await;
    }
}
