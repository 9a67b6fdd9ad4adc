//! `delivery audit list`: who changed or read what, from where.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::harness::{Platform, UNKNOWN_ID, eventually, iri, short_draft};

const TIMEOUT: Duration = Duration::from_secs(30);

/// The rows, oldest first: client, rpc, resource and store.
async fn rows(platform: &Platform, filter: &[&str]) -> Vec<[String; 4]> {
    let listed = platform.run_delivery_json(&[&["audit", "list"], filter].concat()).await;
    let row = |event: &Value| {
        let member = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        ["who", "rpc", "resource", "store"].map(member)
    };
    let rows = listed["audit_events"].as_array().unwrap().iter().rev();
    rows.map(row).collect()
}

fn row(who: &str, rpc: &str, resource: &str, store: &str) -> [String; 4] {
    [who, rpc, resource, store].map(str::to_owned)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

on_both_databases! {
    async fn a_change_has_a_row_of_its_transaction_and_a_refused_or_repeated_one_has_none(platform: &Platform) {
        let client = platform.client().await;
        client.create_delivery(short_draft()).await;
        let created = platform.run_delivery_json(&["stores", "create", "--name=Shop"]).await;
        let store = text(&created["id"]);
        let name = format!("stores/{store}");
        platform.advance(SignedDuration::from_secs(1));
        for _ in 0..2 {
            platform.run_delivery(&["stores", "disable", store, "--idempotency-key=k"]).await;
        }
        platform.run_delivery_output(&["stores", "enable", UNKNOWN_ID]).await;
        platform.run_delivery_output(&["stores", "set", store, "--currency=XXL"]).await;

        let of_store = rows(platform, &["--what", &name]).await;
        let expected = [
            row("Operator", "CreateStore", &name, store),
            row("Operator", "DisableStore", &name, store),
        ];
        assert_eq!(of_store, expected);

        let listed = platform.run_delivery_json(&["audit", "list", "--what=DisableStore"]).await;
        let event = &listed["audit_events"][0];
        let who = text(&event["api_client"]);
        let expected = json!({ "audit_events": [{
            "id": event["id"], "created_at": "2020-04-02T09:00:01+00:00", "who": "Operator",
            "rpc": "DisableStore", "resource": name, "store": store, "address": "127.0.0.1",
            "api_client": who,
        }] });
        assert_eq!(listed, expected);
        assert_eq!(
            platform.run_delivery(&["audit", "list", "--what=DisableStore"]).await,
            format!(
                "at                         who       rpc           {:43}  {:36}  from       client\n\
                 2020-04-02T09:00:01+00:00  Operator  DisableStore  {name}  {store}  127.0.0.1  {who}\n",
                "resource", "store",
            )
        );
        let since = ["--since=2020-04-02T09:00:01Z", "--who", who];
        assert_eq!(rows(platform, &since).await.len(), 1);
        assert_eq!(rows(platform, &["--who", UNKNOWN_ID]).await, Vec::<[String; 4]>::new());
    }

    async fn what_dispatch_changes_names_each_resource_and_its_store(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(short_draft()).await;
        let store = platform.store.strip_prefix("stores/").unwrap();
        let name = |resource: &Value| iri(resource).trim_start_matches("/api/").to_owned();
        let [id, pickup, dropoff] = [
            name(&delivery), name(&delivery["pickup"]), name(&delivery["dropoff"]),
        ];
        let courier = platform.run_delivery_json(&["couriers", "create", "--name=Ada"]).await;
        let courier = text(&courier["id"]);
        let assign = ["tasks", "assign", "--courier", courier, &pickup];

        platform.run_delivery(&assign).await;
        platform.run_delivery(&assign).await;
        platform.run_delivery(&["tasks", "start", &pickup]).await;
        platform.run_delivery(&["tasks", "start", &pickup]).await;
        platform.run_delivery(&["deliveries", "cancel", &id]).await;
        platform.run_delivery(&["erase", "--delivery", &id]).await;

        let courier = format!("couriers/{courier}");
        let mut changes = rows(platform, &[]).await;
        changes.retain(|[_, rpc, ..]| !rpc.starts_with("Get") && !rpc.starts_with("List"));
        // Those of one call have the order of their ids.
        let mut assigned = [pickup.clone(), dropoff];
        assigned.sort();
        let [first, second] = assigned;
        let expected = [
            row("Operator", "CreateCourier", &courier, ""),
            row("Operator", "AssignTasks", &courier, ""),
            row("Operator", "AssignTasks", &first, store),
            row("Operator", "AssignTasks", &second, store),
            row("Operator", "StartTask", &pickup, store),
            row("Operator", "CancelDelivery", &id, store),
            row("Operator", "EraseDeliveries", &id, store),
        ];
        assert_eq!(changes, expected);
    }

    async fn reads_of_personal_data_by_dispatch_have_a_row_a_minute(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(short_draft()).await;
        client.get(iri(&delivery)).await.expect(200);
        let store = platform.store.strip_prefix("stores/").unwrap();
        let name = iri(&delivery).trim_start_matches("/api/").to_owned();
        let show = ["deliveries", "show", &name];
        let expected = |count| vec![row("Operator", "GetDelivery", &name, store); count];
        let recorded = async |count: usize| {
            eventually(TIMEOUT, "the row was not written", async || {
                let rows = rows(platform, &["--what", &name]).await;
                (rows.len() >= count).then_some(rows)
            })
            .await
        };

        for _ in 0..3 {
            platform.run_delivery(&show).await;
        }
        assert_eq!(recorded(1).await, expected(1));
        platform.advance(SignedDuration::from_mins(1));
        platform.run_delivery(&show).await;
        assert_eq!(recorded(2).await, expected(2));
    }

    async fn rows_are_removed_after_their_retention(platform: &Platform) {
        platform.run_delivery(&["stores", "create", "--name=Shop"]).await;
        assert_eq!(rows(platform, &["--what=CreateStore"]).await.len(), 1);

        platform.advance(SignedDuration::from_hours(365 * 24) + SignedDuration::from_mins(1));

        let removed = eventually(TIMEOUT, "the row was not removed", async || {
            let rows = rows(platform, &["--what=CreateStore"]).await;
            rows.is_empty().then_some(())
        });
        removed.await;
    }
}
