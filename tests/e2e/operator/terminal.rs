//! Texts of others in an operator's terminal: names and comments must not change the direction in which the
//! terminal shows what is around them, as bidirectional controls do (UAX #9 §2).

use std::fs;

use serde_json::{Value, json};

use crate::harness::{
    Database, Mismatches, Platform,
    all_in_one::{credentials, stderr},
    definitions::{PRICE_LIST, zone},
    iri,
};

/// The controls that names and comments may have: all but the overrides.
const TEXT: &str =
    "a\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{2066}\u{2067}\u{2068}\u{2069}b";
const ESCAPED: &str = r"a\u061c\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069b";

/// The overrides show letters in another order than they are stored.
const OVERRIDES: [char; 2] = ['\u{202d}', '\u{202e}'];

/// Whether a character changes the direction of what is shown.
fn is_directing(character: char) -> bool {
    TEXT.contains(character) && !character.is_ascii() || OVERRIDES.contains(&character)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_reverses_text_is_refused() {
    let platform = Platform::start(Database::sqlite()).await;
    let courier = platform.operator().await.create_courier("Ada").await;
    let store = platform.store.as_str();
    let scopes = "--scopes=deliveries";
    let mut mismatches = Mismatches::default();

    for character in OVERRIDES {
        let name = format!("--name=a{character}b");
        for arguments in [
            &["stores", "create", &name][..],
            &["stores", "set", store, &name],
            &["clients", "create", "--store", store, &name, scopes],
            &["couriers", "create", &name],
            &["couriers", "set", &courier, &name],
        ] {
            let refused = platform.run_delivery_output(arguments).await;
            let reason = "must not contain control characters, nor those that reverse text";
            mismatches.check_eq(
                format!(
                    "{} {}",
                    arguments[..2].join(" "),
                    character.escape_unicode()
                ),
                (refused.status.code(), stderr(&refused)),
                (Some(1), format!("--name: {reason}\n")),
            );
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_comments_do_not_change_the_direction_of_what_a_command_prints() {
    let platform = Platform::start(Database::sqlite()).await;
    let run = async |arguments: &[&str]| platform.run_delivery_json(arguments).await;
    let (name, scopes) = (format!("--name={TEXT}"), "--scopes=deliveries tasks");
    let store = run(&["stores", "create", &name]).await;
    let store = store["id"].as_str().unwrap();
    let client = run(&["clients", "create", "--store", store, &name, scopes]).await;
    let client = platform
        .client_for(&credentials(&client), &["deliveries", "tasks"])
        .await;
    let courier = run(&["couriers", "create", &name]).await;
    let courier = courier["id"].as_str().unwrap();
    let operator = platform.operator().await;
    operator
        .apply_zones(&zone(TEXT, [2.2, 48.8, 2.5, 48.9]))
        .await;
    let price_list = PRICE_LIST.replace("All", TEXT);
    operator
        .apply_price_list(&format!("stores/{store}"), &price_list)
        .await;
    let draft = json!({
        "pickup": { "address": { "streetAddress": TEXT, "latLng": [48.8566, 2.3530] } },
        "dropoff": {
            "address": { "streetAddress": TEXT, "latLng": [48.8558, 2.3551] },
            "before": "2020-04-02 18:00",
            "comments": TEXT,
        },
    });
    let directory = tempfile::tempdir().unwrap();
    let payload = directory.path().join("payload.json");
    fs::write(&payload, draft.to_string()).unwrap();
    let payload = payload.to_str().unwrap();
    let delivery = client.create_delivery(draft).await;
    let task = iri(&delivery["dropoff"]);
    run(&["tasks", "assign", "--courier", courier, task]).await;
    operator.report_incident(proto::iri::name(task), TEXT).await;
    let mut mismatches = Mismatches::default();

    for arguments in [
        &["stores", "list"][..],
        &["stores", "show", store],
        &["clients", "list", "--store", store],
        &["couriers", "list"],
        &["couriers", "show", courier],
        &["couriers", "lists"],
        &["deliveries", "list"],
        &["deliveries", "show", iri(&delivery)],
        &["tasks", "list"],
        &["tasks", "show", task],
        &["incidents", "list"],
        &["zones", "list"],
        &["prices", "explain", "--store", store, payload],
    ] {
        let case = arguments.join(" ");
        let text = platform.run_delivery(arguments).await;
        let json = platform
            .run_delivery(&[arguments, &["--json"]].concat())
            .await;
        for printed in [&text, &json] {
            mismatches.check_eq(&case, printed.find(is_directing), None);
            mismatches.check(&case, printed.contains(ESCAPED), printed);
        }
        let read: Value = serde_json::from_str(&json).unwrap();
        let is_same = read.to_string().contains(TEXT);
        mismatches.check(&case, is_same, "the JSON has another text");
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhooks_url_is_printed_as_it_is_used_without_invisible_characters() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let invisible = "\u{200b}\u{2060}\u{feff}\u{ad}\u{202e}";
    let url = format!("http://127.0.0.1:9/{TEXT}{invisible}");
    client.create_webhook("delivery.picked", &url).await;

    let list = ["webhooks", "list", "--store", &platform.store];
    let text = platform.run_delivery(&list).await;
    let listed = platform.run_delivery_json(&list).await;

    assert!(text.contains("  http://127.0.0.1:9/ab  "), "{text}");
    assert_eq!(listed[0]["url"], "http://127.0.0.1:9/ab");
    platform.stop().await;
}

/// A definition or an argument may have been copied from elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_does_not_take_the_direction_of_the_text_that_it_quotes() {
    let platform = Platform::start(Database::sqlite()).await;
    let store = platform.store.as_str();
    let condition = "in_zone(dropoff.address, \\\"a\u{202e}b\\\")";
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list.toml");
    fs::write(&list, PRICE_LIST.replace("distance >= 0", condition)).unwrap();
    let list = list.to_str().unwrap();
    let mut mismatches = Mismatches::default();

    for arguments in [
        &["zones", "show", "a\u{202e}b"][..],
        &["stores", "set", store, "--service-area=zone:a\u{202e}b"],
        &["prices", "check", list],
        &["prices", "apply", list, "--store", store],
    ] {
        let case = arguments[..2].join(" ");
        let failed = platform.run_delivery_output(arguments).await;
        let error = stderr(&failed);
        mismatches.check_eq(&case, failed.status.code(), Some(1));
        mismatches.check_eq(&case, error.find(is_directing), None);
        mismatches.check(&case, error.contains("202e"), &error);
    }

    mismatches.assert_none();
    platform.stop().await;
}
