//! Commands whose effect is uncertain: they are repeated with their idempotency keys.

use std::{fs, path::Path, process::Output};

use serde_json::Value;

use crate::harness::{
    LossyProxy, Platform,
    all_in_one::{program, stderr},
    definitions::{PRICE_LIST, TIME_SLOT, zone},
    deliver, draft, iri, run_operator_command,
};

const CREATE: [&str; 4] = ["clients", "create", "--name=Night shift", "--scopes=admin"];

const REPLAYED: &str = "note: an earlier attempt of this command took effect; this is its output\n";

on_both_databases! {
    async fn a_command_that_core_does_not_confirm_is_retried_and_takes_effect_once(platform: &Platform) {
        let proxy = LossyProxy::with_unconfirmed(&platform.core_url, 1).await;

        let created = run_operator_command(&proxy.url, &platform.operator_client, &CREATE).await;

        assert!(created.status.success(), "{}", stderr(&created));
        assert_eq!(stderr(&created), REPLAYED);
        assert_eq!(clients_named_night_shift(platform).await, 1);
        assert_is_operator(platform, &created).await;
    }

    async fn a_command_that_stays_unconfirmed_prints_the_command_to_repeat(platform: &Platform) {
        let proxy = LossyProxy::with_unconfirmed(&platform.core_url, 2).await;

        let unconfirmed = run_operator_command(&proxy.url, &platform.operator_client, &CREATE).await;

        assert_eq!(unconfirmed.status.code(), Some(1));
        assert_eq!(unconfirmed.stdout, b"");
        let printed = stderr(&unconfirmed);
        let (reason, command) = printed.trim_end().rsplit_once('\n').unwrap();
        assert_eq!(
            reason,
            "try again\n\
             It is not known whether the command took effect. Repeat it with its idempotency key \
             within 7 days: it takes effect once, and prints the same output:"
        );
        assert!(command.contains("'--name=Night shift'"), "{command}");

        for _ in 0..2 {
            let mut shell = program("sh");
            shell
                .args(["-c", command])
                .env("DELIVERY_OPERATOR_KEY", &platform.operator_client.api_key)
                .env("DELIVERY_OPERATOR_SECRET", &platform.operator_client.api_secret);
            let repeated = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
            assert!(repeated.status.success(), "{}", stderr(&repeated));
            assert_eq!(stderr(&repeated), REPLAYED);
            assert_is_operator(platform, &repeated).await;
        }
        assert_eq!(clients_named_night_shift(platform).await, 1);
    }

    /// Also if something else has changed meanwhile: a repetition does not undo later commands.
    async fn every_command_that_writes_takes_effect_once_with_an_idempotency_key(platform: &Platform) {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| write(directory.path(), name, text);
        let (list, other_list) = (file("list", PRICE_LIST), file("other list", &PRICE_LIST.replace("499", "599")));
        let (slots, other_slots) =
            (file("slots", TIME_SLOT), file("other slots", &TIME_SLOT.replace("12:00", "13:00")));
        let zone = file("zone", &zone("Town", [2.2, 48.8, 2.5, 48.9]));
        let shop = platform.client().await;
        let webhook = shop.create_webhook("delivery.completed", "http://127.0.0.1:9/").await;
        let webhook = iri(&webhook);
        deliver(&shop, &platform.courier().await).await;
        let notifications = format!("{webhook}/notifications");
        let first = |page: Value| page["hydra:member"].get(0).cloned();
        let notification = shop.wait_until(&notifications, first).await;
        let notification = iri(&notification).to_owned();
        let store = platform.store.as_str();
        let created = ["clients", "create", "--name=Till", "--scopes=deliveries", "--store", store];
        let client = platform.run_delivery_json(&created).await;
        let client = client["id"].as_str().unwrap();
        let courier = platform.run_delivery_json(&["couriers", "create", "--name=Eve"]).await;
        let courier = courier["id"].as_str().unwrap();
        let of_courier = format!("--courier={courier}");
        let delivery = shop.create_delivery(draft()).await;
        let task = iri(&delivery["dropoff"]);
        let operator = platform.operator().await;
        let incident = operator.report_incident(proto::iri::name(task), "Wet").await;
        let incident = incident.as_str();

        // Each command, and one that changes the same state in between.
        for (key, (command, between)) in [
            (&["stores", "create", "--name=New"][..], &["stores", "create", "--name=Newer"][..]),
            (
                &["stores", "set", store, "--name=Renamed"],
                &["stores", "set", store, "--name=Renamed again"],
            ),
            (&["stores", "disable", store], &["stores", "enable", store]),
            (&["stores", "enable", store], &["stores", "list"]),
            (&CREATE, &["clients", "create", "--name=Other", "--scopes=admin"]),
            (&["clients", "rotate-secret", client], &["clients", "rotate-secret", client]),
            (&["prices", "apply", &list, "--store", store], &["prices", "apply", &other_list, "--store", store]),
            (&["time-slots", "apply", &slots, "--store", store], &["time-slots", "apply", &other_slots, "--store", store]),
            (&["zones", "apply", &zone], &["zones", "list"]),
            (&["keys", "rotate"], &["keys", "rotate"]),
            (&["webhooks", "rotate-secret", webhook], &["webhooks", "rotate-secret", webhook]),
            (&["webhooks", "resend", &notification], &["keys", "list"]),
            (&["webhooks", "recover", webhook, "--since=2020-04-02T08:00:00Z"], &["keys", "list"]),
            (&["couriers", "create", "--name=Ada"], &["couriers", "create", "--name=Bob"]),
            (&["couriers", "disable", courier], &["couriers", "enable", courier]),
            (&["tasks", "assign", &of_courier, task], &["tasks", "unassign", task]),
            (&["incidents", "close", incident, "--note=dried"], &["keys", "list"]),
            (&["webhooks", "disable", webhook], &["webhooks", "enable", webhook]),
            (&["webhooks", "enable", webhook], &["webhooks", "disable", webhook]),
            (&["webhooks", "confirm-secret", webhook], &["webhooks", "rotate-secret", webhook]),
            (&["clients", "disable", client], &["clients", "list"]),
            (&["keys", "revoke", "--all"], &["keys", "rotate"]),
        ]
        .into_iter()
        .enumerate()
        {
            let key = format!("--idempotency-key=key {key}");
            let keyed = [command, &["--json", &key]].concat();

            let first = platform.run_delivery_output(&keyed).await;
            assert!(first.status.success(), "{command:?}: {}", stderr(&first));
            assert_eq!(stderr(&first), "", "{command:?}");
            platform.run_delivery_json(between).await;
            let state = read_state(platform, webhook).await;
            let second = platform.run_delivery_output(&keyed).await;

            assert!(second.status.success(), "{command:?}: {}", stderr(&second));
            assert_eq!(stderr(&second), REPLAYED, "{command:?}");
            assert_eq!(second.stdout, first.stdout, "{command:?}");
            assert_eq!(read_state(platform, webhook).await, state, "{command:?}");
        }
    }

    async fn a_key_belongs_to_one_command(platform: &Platform) {
        let keyed = |name| ["clients", "create", name, "--scopes=admin", "--idempotency-key=k"];
        platform.run_delivery(&keyed("--name=One")).await;

        let reused = platform.run_delivery_output(&keyed("--name=Two")).await;

        assert_eq!(reused.status.code(), Some(1));
        assert_eq!(
            stderr(&reused),
            "the idempotency key was used for another request; use a new key for each request, and \
             the same key only to repeat a request unchanged\n"
        );
        let keyed = ["stores", "create", "--name=One", "--idempotency-key=é"];
        let invalid = platform.run_delivery_output(&keyed).await;
        assert_eq!(
            stderr(&invalid),
            "--idempotency-key: must be 1 to 255 printable ASCII characters\n"
        );
    }
}

/// Everything that the commands change.
async fn read_state(platform: &Platform, webhook: &str) -> Vec<Value> {
    let store = platform.store.as_str();
    let mut state = Vec::new();
    for command in [
        &["stores", "list"][..],
        &["clients", "list"],
        &["prices", "history", "--store", store],
        &["time-slots", "show", "--store", store],
        &["zones", "list"],
        &["keys", "list"],
        &["couriers", "list"],
        &["couriers", "lists"],
        &["incidents", "list", "--all"],
        &["webhooks", "list", "--store", store],
    ] {
        state.push(platform.run_delivery_json(command).await);
    }
    let client = platform.client().await;
    state.push(client.get(webhook).await.expect(200));
    state
}

async fn clients_named_night_shift(platform: &Platform) -> usize {
    let clients = platform.run_delivery_json(&["clients", "list"]).await;
    let clients = clients.as_array().unwrap().iter();
    clients
        .filter(|client| client["name"] == "Night shift")
        .count()
}

/// Asserts that a command printed the credentials of an operator's client.
async fn assert_is_operator(platform: &Platform, output: &Output) {
    let printed = String::from_utf8_lossy(&output.stdout);
    let field = |name: &str| {
        let value = printed.lines().find_map(|line| line.strip_prefix(name));
        value.unwrap().trim().to_owned()
    };
    let credentials = delivery::Credentials {
        api_key: field("api key"),
        api_secret: field("api secret"),
    };
    let listed = platform
        .run_delivery_as(&credentials, &["stores", "list"])
        .await;
    assert!(listed.status.success(), "{}", stderr(&listed));
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
