//! The operator's commands, run as the real binary: against a running all-in-one, or against a
//! platform on both databases, whose clock the test sets.

mod address_import;
mod addresses;
mod audit;
mod clients;
mod disabled_stores;
mod doctor;
mod keys;
mod master_keys;
mod repeating;
mod stores;
mod terminal;
mod token;
mod webhooks;

use std::fs;

use delivery::Credentials;
use serde_json::json;

use crate::harness::{
    UNKNOWN_ID,
    all_in_one::{AllInOne, operator_command, run_delivery, stderr},
    definitions::{PRICE_LIST, TIME_SLOT},
};

#[test]
fn an_operator_creates_a_store_and_a_client_that_creates_deliveries() {
    let mut running = AllInOne::start_new(&[]);

    let store = running.run_json(&[
        "stores",
        "create",
        "--name=Book shop",
        "--address=45 Rue d'Ulm, Paris",
    ]);
    let id = store["id"].as_str().unwrap();
    let by_iri = running.run_json(&["stores", "show", store["iri"].as_str().unwrap()]);
    let listed = running.run_json(&["stores", "list"]);
    let renamed = running.run_json(&["stores", "set", id, "--name=Book store"]);
    assert_eq!(by_iri, store);
    assert_eq!(listed.as_array().unwrap().last(), Some(&store));
    assert_eq!(renamed["name"], "Book store");
    assert_eq!(renamed["address"], store["address"]);

    let client = running.run_json(&[
        "clients",
        "create",
        "--store",
        id,
        "--name=Website",
        "--scopes=deliveries tasks",
    ]);
    assert_eq!(client["store"], id);
    // `create_delivery` reads its credentials from here.
    running.ready["demo_client"] = client.clone();
    let created = running.create_delivery();
    let task = created["dropoff"]["@id"].as_str().unwrap();
    assert_eq!(running.run_json(&["tasks", "show", task])["status"], "TODO");
    for _ in 0..2 {
        let completed = running.run_json(&["tasks", "complete", task]);
        assert_eq!(
            (&completed["iri"], &completed["status"]),
            (&json!(task), &json!("DONE"))
        );
    }

    let client = client["id"].as_str().unwrap();
    let rotated = running.run_json(&["clients", "rotate-secret", client]);
    assert_ne!(
        rotated["api_secret"],
        running.ready["demo_client"]["api_secret"]
    );
    let disabled = running.run_json(&["clients", "disable", client]);
    assert!(disabled["disabled_at"].is_string());
    let clients = running.run_json(&["clients", "list", "--store", id]);
    assert_eq!(clients.as_array().unwrap().len(), 1);
    assert_eq!(clients[0].get("api_secret"), None);
}

#[test]
fn a_definition_is_applied_and_shown_and_an_invalid_or_too_large_one_is_rejected() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let store = running.text("/store");

    for (command, definition) in [("time-slots", TIME_SLOT), ("prices", PRICE_LIST)] {
        let valid = data_dir.join("valid.toml");
        fs::write(&valid, definition).unwrap();
        let valid = valid.to_str().unwrap();
        running.run_json(&[command, "check", valid]);
        let applied = running.run_json(&[command, "apply", valid, "--store", store]);
        let shown = running.run_json(&[command, "show", "--store", store]);
        assert_eq!(applied["definition"], definition);
        assert_eq!(shown, applied);

        let invalid = data_dir.join("invalid.toml");
        fs::write(&invalid, format!("{definition}nonsense = 1\n")).unwrap();
        let invalid = invalid.to_str().unwrap();
        let rejected = running.run(&[command, "apply", invalid, "--store", store]);
        assert_eq!(rejected.status.code(), Some(1));
        let line = definition.lines().count() + 1;
        assert!(
            stderr(&rejected).starts_with(&format!("{invalid}:{line}:")),
            "{}",
            stderr(&rejected)
        );

        let large = data_dir.join("large.toml");
        let comment = "#".repeat(4 << 20);
        fs::write(&large, format!("{definition}{comment}\n")).unwrap();
        let large = large.to_str().unwrap();
        let rejected = running.run(&[command, "apply", large, "--store", store]);
        assert_eq!(rejected.status.code(), Some(1));
        assert_eq!(
            stderr(&rejected),
            format!("{large} is larger than the 4 MiB that core accepts: shorten it\n")
        );
        assert_eq!(
            running.run_json(&[command, "show", "--store", store]),
            applied
        );
    }
}

#[test]
fn a_remote_operator_passes_the_core_url_and_credentials() {
    let running = AllInOne::start_new(&[]);
    let list_stores = |operator: &Credentials| {
        operator_command(running.text("/core_url"), operator, &["stores", "list"])
            .output()
            .unwrap()
    };
    let mut operator = running.operator_client();

    let listed = list_stores(&operator);
    "wrong".clone_into(&mut operator.api_secret);
    let rejected = list_stores(&operator);

    assert!(String::from_utf8_lossy(&listed.stdout).contains("Demo shop"));
    assert_eq!(rejected.status.code(), Some(1));
    assert!(
        stderr(&rejected).starts_with("cannot get an access token for the operator: "),
        "{}",
        stderr(&rejected)
    );
}

#[test]
fn the_exit_status_distinguishes_failed_commands_from_usage_errors() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let unknown = UNKNOWN_ID;

    for (status, arguments) in [
        (1, &["stores", "list"][..]),
        (1, &["tasks", "show", unknown]),
        (2, &["tasks", "complete", "/api/deliveries/1"]),
        (2, &["stores", "create"]),
        (2, &["stores", "set", unknown]),
        (2, &["fly"]),
        (2, &["start", "--timezone"]),
    ] {
        let output = run_delivery(data_dir, arguments);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty());
        assert!(!output.stderr.is_empty());
    }
}
