//! The audit log: what operators did, and refused token requests.

use delivery::Credentials;
use serde_json::{Value, json};

use crate::{all_in_one::AllInOne, api_client::ApiClient, cluster::credentials, program};

const TIME_SLOT: &str = r#"
name = "Midday"
opening_hours = ["Mo-Su 12:00-14:00"]
interval = "2 days"
"#;

/// The log contains neither the shop's own changes nor what an operator reads.
#[tokio::test]
async fn the_audit_log_names_who_did_what_to_what() {
    let platform = AllInOne::start().await;
    let ready = platform.ready();
    let base_url = ready["base_url"].as_str().unwrap();
    let shop = credentials(&ready["demo_client"]);
    let shop = ApiClient::authorized(base_url, &shop, &["deliveries", "tasks"]).await;
    let draft = json!({ "event": "delivery.completed", "url": "http://127.0.0.1:1/" });
    let webhook = shop.post("/api/webhooks", draft).await.expect(201);
    let task = json!({ "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" });
    let delivery = shop
        .post("/api/deliveries", json!({ "dropoff": task }))
        .await
        .expect(201);
    let run = |arguments: &[&str]| {
        let output = platform.operator(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{output:?}");
        program::parse(&output)
    };
    // The second time it is replayed.
    let run_twice = |arguments: &[&str]| {
        let keyed = [arguments, &["--idempotency-key=k"]].concat();
        let (first, second) = (run(&keyed), run(&keyed));
        assert_eq!(first, second);
        first
    };
    let id = |created: &Value| created["id"].as_str().unwrap().to_owned();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let definition = |file: &str| format!("{examples}/{file}");
    let slots = platform.directory.path().join("slots.toml");
    std::fs::write(&slots, TIME_SLOT).unwrap();

    let clients = run(&["clients", "list"]);
    let store = id(&run_twice(&["stores", "create", "--name=Shop"]));
    let of_store = format!("--store={store}");
    run_twice(&["stores", "set", &store, "--name=Book shop"]);
    run_twice(&["zones", "apply", &definition("zones.geojson")]);
    run_twice(&["prices", "apply", &of_store, &definition("prices.toml")]);
    run_twice(&["time-slots", "apply", &of_store, slots.to_str().unwrap()]);
    let create = "clients create --name=Till --scopes=tasks";
    let create: Vec<_> = create.split(' ').chain([&*of_store]).collect();
    let client = id(&run_twice(&create));
    run(&["clients", "rotate-secret", &client]);
    run(&["clients", "disable", &client]);
    let webhook = id(&webhook);
    for command in ["disable", "enable", "rotate-secret", "confirm-secret"] {
        run(&["webhooks", command, &webhook]);
    }
    let task = delivery["pickup"]["@id"].as_str().unwrap();
    run(&["tasks", "start", task]);
    run(&["tasks", "start", task]);
    run_twice(&["tasks", "complete", task]);
    run(&["erase", "--delivery", &id(&delivery)]);
    let key = id(&run(&["keys", "rotate"]));
    run(&["keys", "revoke", &key]);
    run(&["stores", "list"]);
    platform.server.wait_for_line("RevokeSigningKeys").await;
    let operator_key = &ready["operator_client"]["api_key"];
    let is_operator = |client: &&Value| client["api_key"] == *operator_key;
    let mut clients = clients.as_array().unwrap().iter();
    let operator = id(clients.find(is_operator).unwrap());
    let task = task.trim_start_matches("/api/").to_owned();
    let with_replays = [
        ("CreateStore", format!("stores/{store}")),
        ("UpdateStore", format!("stores/{store}")),
        ("ApplyZones", "zones".to_owned()),
        ("ApplyPriceList", format!("stores/{store}")),
        ("ApplyTimeSlot", format!("stores/{store}")),
        ("CreateApiClient", format!("api_apps/{client}")),
    ];
    let with_replays = with_replays.into_iter().flat_map(|(rpc, resource)| {
        ["", " replayed=true"].map(|effect| (rpc, resource.clone(), effect))
    });
    let others = [
        ("RotateApiClientSecret", format!("api_apps/{client}"), ""),
        ("DisableApiClient", format!("api_apps/{client}"), ""),
        ("DisableWebhook", format!("webhooks/{webhook}"), ""),
        ("EnableWebhook", format!("webhooks/{webhook}"), ""),
        ("RotateWebhookSecret", format!("webhooks/{webhook}"), ""),
        ("ConfirmWebhookSecret", format!("webhooks/{webhook}"), ""),
        ("StartTask", task.clone(), ""),
        ("StartTask", task.clone(), " unchanged=true"),
        ("CompleteTask", task.clone(), ""),
        ("CompleteTask", task, " replayed=true"),
        (
            "EraseDeliveries",
            format!("deliveries/{}", id(&delivery)),
            "",
        ),
        ("RotateSigningKey", format!("signing_keys/{key}"), ""),
        ("RevokeSigningKeys", format!("signing_keys/{key}"), ""),
    ];
    let expected: Vec<_> = with_replays.chain(others).collect();
    let changes = expected.iter().filter(|(.., effect)| effect.is_empty());
    let changes = changes.map(|(rpc, resource, _)| json!([rpc, resource]));
    let rows = rows(&run(&["audit", "list", "--who", &operator]));
    assert_eq!(rows, changes.collect::<Vec<_>>());
    let expected = expected.into_iter().map(|(rpc, resource, effect)| {
        format!("client=\"api_apps/{operator}\" rpc=\"{rpc}\" resource=\"{resource}\"{effect}")
    });
    assert_eq!(audited(&platform), expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn the_audit_log_has_changes_of_couriers_and_of_their_lists() {
    let platform = AllInOne::start().await;
    let ready = platform.ready();
    let shop = credentials(&ready["demo_client"]);
    let base_url = ready["base_url"].as_str().unwrap();
    let shop = ApiClient::authorized(base_url, &shop, &["deliveries"]).await;
    let task = json!({ "address": "48 Rue de Rivoli, 75004 Paris", "before": "tomorrow 13:00" });
    let delivery = shop
        .post("/api/deliveries", json!({ "dropoff": task }))
        .await
        .expect(201);
    let task = delivery["dropoff"]["@id"].as_str().unwrap();
    let run = |arguments: &[&str]| {
        let output = platform.operator(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{output:?}");
        program::parse(&output)
    };

    let courier = run(&["couriers", "create", "--name=Ada"]);
    let courier = courier["id"].as_str().unwrap();
    run(&["tasks", "assign", &format!("--courier={courier}"), task]);
    run(&["couriers", "lists"]);
    run(&["tasks", "unassign", task]);
    run(&["couriers", "disable", courier]);
    let delivery = delivery["@id"].as_str().unwrap();
    run(&["deliveries", "show", delivery]);
    run(&["deliveries", "cancel", delivery]);
    run(&["deliveries", "cancel", delivery]);

    platform.server.wait_for_line("unchanged=true").await;
    let audited = audited(&platform);
    let changes = audited
        .iter()
        .map(|line| line.split_once(' ').unwrap().1.to_owned());
    let task = task.trim_start_matches("/api/");
    let delivery = delivery.trim_start_matches("/api/");
    let expected = [
        format!("rpc=\"CreateCourier\" resource=\"couriers/{courier}\""),
        format!("rpc=\"AssignTasks\" resource=\"couriers/{courier} {task}\""),
        format!("rpc=\"AssignTasks\" resource=\"{task}\""),
        format!("rpc=\"UpdateCourier\" resource=\"couriers/{courier}\""),
        format!("rpc=\"CancelDelivery\" resource=\"{delivery}\""),
        format!("rpc=\"CancelDelivery\" resource=\"{delivery}\" unchanged=true"),
    ];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_audit_log_has_refused_token_requests() {
    let platform = AllInOne::start().await;
    let ready = platform.ready();
    let base_url = ready["base_url"].as_str().unwrap();
    let shop = credentials(&ready["demo_client"]);
    let anonymous = ApiClient::new(base_url);
    let grant = ("grant_type", "client_credentials");
    let unknown = Credentials {
        api_key: format!("a\nb{}", "c".repeat(40)),
        api_secret: "wrong".to_owned(),
    };
    anonymous.request_token(&unknown, &[grant]).await;
    let refused = anonymous
        .request_token(&shop, &[grant, ("scope", "admin")])
        .await;
    assert_eq!(refused.status, 400, "{}", refused.json);

    platform.server.wait_for_line("not permitted").await;
    let refused = |reason: &str, api_key: &str| {
        format!("refused: {reason} rpc=\"IssueToken\" api_key={api_key:?}")
    };
    // The first 40 characters are logged.
    let start = format!("a\nb{}", "c".repeat(37));
    let expected = [
        refused("wrong key or secret", &start),
        refused("scope not permitted", &shop.api_key),
    ];
    assert_eq!(audited(&platform), expected);
    for secret in ["demo_client", "operator_client"] {
        let secret = ready[secret]["api_secret"].as_str().unwrap();
        let output = platform.server.output();
        assert!(!output.iter().any(|line| line.contains(secret)));
    }
}

/// The rpcs and resources of listed rows, oldest first.
fn rows(listed: &Value) -> Vec<Value> {
    let listed = listed["audit_events"].as_array().unwrap().iter().rev();
    let rows = listed.map(|event| json!([event["rpc"], event["resource"]]));
    rows.collect()
}

/// The lines of the audit log, without their times.
fn audited(platform: &AllInOne) -> Vec<String> {
    let output = platform.server.output().into_iter();
    let audited = output.filter_map(|line| Some(line.split_once(" INFO audit: ")?.1.to_owned()));
    audited.collect()
}
