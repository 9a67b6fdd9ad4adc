//! `delivery audit list`: who changed or read what, from where.

use std::{collections::BTreeSet, fs, time::Duration};

use jiff::SignedDuration;
use proto::{
    CompleteTasksRequest, CourierList, CreateDeliveryRequest, DeleteWebhookRequest,
    ListCourierListsRequest, SetCourierListsRequest, UpdateTaskRequest,
    couriers_client::CouriersClient, deliveries_client::DeliveriesClient,
    tasks_client::TasksClient, webhooks_client::WebhooksClient,
};
use serde_json::{Value, json};

use crate::{
    harness::{
        Platform, UNKNOWN_ID, WebhookReceiver,
        definitions::{PRICE_LIST, TIME_SLOT, zone},
        deliver, draft, eventually, grpc, iri, run_sql, short_draft,
    },
    scopes,
};

/// The beginnings of rpcs that change nothing, and rpcs that operators and dispatch do not call.
const READS: [&str; 8] = [
    "Get",
    "List",
    "Search",
    "Check",
    "Watch",
    "Explain",
    "Calculate",
    "Assert",
];
const OF_OTHERS: [&str; 4] = ["IssueToken", "Receive", "ReportOutcomes", "CreateWebhook"];

const TIMEOUT: Duration = Duration::from_secs(30);

/// The rows, oldest first: client, rpc, resource and store.
async fn rows(platform: &Platform, filter: &[&str]) -> Vec<[String; 4]> {
    let listed = platform
        .run_delivery_json(&[&["audit", "list"], filter].concat())
        .await;
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

    async fn every_rpc_that_changes_something_has_rows(platform: &Platform) {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path.into_os_string().into_string().unwrap()
        };
        let addresses = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n48;;Rue de Rivoli;75004;Paris;2.36;48.85\n";
        let [addresses, list, slots, zone] = [
            file("addresses.csv", addresses),
            file("list", PRICE_LIST),
            file("slots", TIME_SLOT),
            file("zone", &zone("Town", [2.2, 48.8, 2.5, 48.9])),
        ];
        let (shop, operator) = (platform.client().await, platform.operator().await);
        let receiver = WebhookReceiver::start().await;
        let webhook = shop.create_webhook("delivery.completed", receiver.url()).await;
        let webhook = iri(&webhook);
        deliver(&shop, &platform.courier().await).await;
        receiver.next_notification().await;
        let first = |page: Value| page["hydra:member"].get(0).cloned();
        let notification = shop.wait_until(&format!("{webhook}/notifications"), first).await;
        let delivery = shop.create_delivery(draft()).await;
        let name = |resource: &Value| iri(resource).trim_start_matches("/api/").to_owned();
        let [delivery, pickup, dropoff] =
            [name(&delivery), name(&delivery["pickup"]), name(&delivery["dropoff"])];
        let incident = operator.report_incident(&dropoff, "Wet").await;
        operator.upload_image(&dropoff).await;
        let store = platform.store.as_str();
        let client = operator.create_client(store, &["deliveries"]).await;
        let client = operator.client_name(&client).await;
        let courier = operator.create_courier("Ada").await;

        for command in [
            &["stores", "create", "--name=New"][..],
            &["stores", "set", store, "--name=Renamed"],
            &["stores", "disable", store],
            &["stores", "enable", store],
            &["clients", "rotate-secret", &client],
            &["clients", "disable", &client],
            &["prices", "apply", &list, "--store", store],
            &["time-slots", "apply", &slots, "--store", store],
            &["zones", "apply", &zone],
            &["addresses", "import", &addresses],
            &["keys", "rotate"],
            &["keys", "revoke", "--all"],
            &["keys", "rotate-master"],
            &["webhooks", "resend", iri(&notification)],
            &["webhooks", "recover", webhook, "--since=2020-04-02T08:00:00Z"],
            &["webhooks", "test", webhook],
            &["webhooks", "rotate-secret", webhook],
            &["webhooks", "confirm-secret", webhook],
            &["webhooks", "disable", webhook],
            &["webhooks", "enable", webhook],
            &["couriers", "set", &courier, "--name=Eve"],
            &["tasks", "assign", "--courier", &courier, &pickup],
            &["tasks", "start", &pickup],
            &["tasks", "fail", &pickup, "--reason=NOT_AT_HOME"],
            &["tasks", "reschedule", &pickup, "--after=2020-04-03T08:00:00Z", "--before=2020-04-03T10:00:00Z"],
            &["tasks", "complete", &pickup],
            &["tasks", "reopen", &pickup],
            &["incidents", "close", &incident],
            &["deliveries", "revoke-link", &delivery],
            &["deliveries", "cancel", &delivery],
            &["erase", "--delivery", &delivery],
        ] {
            platform.run_delivery(command).await;
        }
        change_without_commands(platform, &courier, webhook).await;

        let changes = scopes::rpcs().filter(|rpc| {
            !READS.iter().any(|read| rpc.starts_with(read)) && !OF_OTHERS.contains(rpc)
        });
        let changes: BTreeSet<_> = changes.map(str::to_owned).collect();
        let missing = eventually(TIMEOUT, "rows were missing", async || {
            let recorded = rows(platform, &[]).await;
            let recorded: BTreeSet<_> = recorded.into_iter().map(|[_, rpc, ..]| rpc).collect();
            let missing: Vec<_> = changes.difference(&recorded).cloned().collect();
            // Those that are recorded right after may be so in a moment.
            let may_come = |rpc: &String| ["TestWebhook", "ImportAddresses"].contains(&&**rpc);
            (!missing.iter().any(may_come)).then_some(missing)
        });
        assert_eq!(missing.await, Vec::<String>::new());
    }
}

/// A trigger refuses the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_row_cannot_be_written_has_no_effect() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN RAISE EXCEPTION ''refused''; END';
        CREATE TRIGGER refuse BEFORE INSERT ON audit_events
            FOR EACH ROW EXECUTE FUNCTION refuse()";
    run_sql(&url, refuse).await;

    let disabled = platform
        .run_delivery_output(&["stores", "disable", &platform.store])
        .await;

    assert_eq!(disabled.status.code(), Some(1));
    let client = platform.client().await;
    client.create_delivery(short_draft()).await;
    platform.stop().await;
}

fn order() -> proto::DeliveryDraft {
    proto::DeliveryDraft {
        dropoff: Some(proto::TaskDraft {
            address: Some(proto::task_draft::Address::AddressText(
                "48 Rue de Rivoli, 75004 Paris".to_owned(),
            )),
            before: Some("tomorrow 13:00".to_owned()),
            ..proto::TaskDraft::default()
        }),
        ..proto::DeliveryDraft::default()
    }
}

/// Makes the changes that no command makes.
async fn change_without_commands(platform: &Platform, courier: &str, webhook: &str) {
    let (channel, token) = platform.connect(&["admin"]).await;
    let mut deliveries = DeliveriesClient::new(channel.clone());
    let order = CreateDeliveryRequest {
        delivery: Some(order()),
        store: platform.store.clone(),
        ..Default::default()
    };
    let ordered = deliveries
        .create_delivery(grpc::with_token(&token, order))
        .await
        .unwrap();
    let task = ordered.into_inner().dropoff.unwrap();
    let mut couriers = CouriersClient::new(channel.clone());
    let listed = grpc::with_token(&token, ListCourierListsRequest::default());
    let listed = couriers
        .list_courier_lists(listed)
        .await
        .unwrap()
        .into_inner();
    let list = CourierList {
        courier: courier.to_owned(),
        tasks: vec![task.name.clone()],
        etag: listed.empty_etag,
        ..CourierList::default()
    };
    let set = SetCourierListsRequest {
        day: listed.day,
        lists: vec![list],
        idempotency: None,
    };
    couriers
        .set_courier_lists(grpc::with_token(&token, set))
        .await
        .unwrap();
    let mut tasks = TasksClient::new(channel.clone());
    let corrected = UpdateTaskRequest {
        task: Some(proto::Task {
            comments: "Ring".to_owned(),
            ..task.clone()
        }),
        update_mask: Some(prost_types::FieldMask {
            paths: vec!["comments".to_owned()],
        }),
        ..UpdateTaskRequest::default()
    };
    tasks
        .update_task(grpc::with_token(&token, corrected))
        .await
        .unwrap();
    let completed = CompleteTasksRequest {
        tasks: vec![task.name],
        ..Default::default()
    };
    tasks
        .complete_tasks(grpc::with_token(&token, completed))
        .await
        .unwrap();
    let deleted = DeleteWebhookRequest {
        name: webhook.trim_start_matches("/api/").to_owned(),
    };
    WebhooksClient::new(channel)
        .delete_webhook(grpc::with_token(&token, deleted))
        .await
        .unwrap();
}
