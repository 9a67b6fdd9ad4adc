//! The start-up contract of `delivery`: output, `ready.json`, exit status, flags.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::{Value, json};

use crate::harness::{
    Database,
    all_in_one::{AllInOne, command, run_delivery, stderr},
};

#[test]
fn a_start_prints_one_line_with_the_documentation_and_a_working_next_command() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();

    let [line] = &running.printed[..] else {
        panic!("{:?}", running.printed);
    };
    let (rest, grpc) = (running.text("/base_url"), running.text("/core_url"));
    let (ready, next) = line.split_once("; next: ").unwrap();
    assert_eq!(
        ready,
        format!(
            "ready: documentation {rest}/api/docs, REST {rest}, gRPC {grpc}, keys in {}",
            data_dir.join("ready.json").display()
        )
    );
    let choices = Command::new("sh").args(["-c", next]).output().unwrap();
    let choices: Value = serde_json::from_slice(&choices.stdout).unwrap();
    assert_eq!(choices["@type"], "TimeSlotChoices");
}

#[test]
fn the_next_command_without_a_demo_lists_the_stores() {
    let running = AllInOne::start_new(&["--no-demo"]);

    let [line] = &running.printed[..] else {
        panic!("{:?}", running.printed);
    };
    let (_, next) = line.split_once("; next: ").unwrap();
    let stores = Command::new("sh").args(["-c", next]).output().unwrap();
    assert!(stores.status.success(), "{stores:?}");
}

#[test]
fn ready_json_has_urls_and_credentials_and_is_readable_only_by_its_owner() {
    let running = AllInOne::start_new(&["start"]);
    let data_dir = running.data_dir();

    let members: Vec<_> = running.ready.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "base_url",
            "core_url",
            "demo_client",
            "operator_client",
            "pid",
            "store"
        ]
    );
    assert_eq!(running.ready["pid"], running.process.id());
    assert!(running.text("/base_url").starts_with("http://127.0.0.1:"));
    assert!(running.text("/core_url").starts_with("http://127.0.0.1:"));
    for file in [
        "ready.json",
        "master.key",
        "delivery.sqlite",
        "delivery.sqlite-wal",
        "delivery.sqlite-shm",
    ] {
        let mode = fs::metadata(data_dir.join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn sigterm_and_sigint_stop_the_platform_with_status_0() {
    for signal in ["-TERM", "-INT"] {
        let data_dir = tempfile::tempdir().unwrap();
        let running = AllInOne::start(data_dir.path(), &[]);

        assert_eq!(running.stop(signal).code(), Some(0), "{signal}");
    }
}

#[test]
fn a_restart_keeps_deliveries_and_the_demo_credentials() {
    let data_dir = tempfile::tempdir().unwrap();
    assert_kept_after_restart(data_dir.path(), &[]);
}

#[test]
fn a_restart_on_postgres_keeps_deliveries_and_the_demo_credentials() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let data_dir = tempfile::tempdir().unwrap();
    let url = format!("--database-url={}", database.url.unwrap());
    assert_kept_after_restart(data_dir.path(), &[&url]);
}

fn assert_kept_after_restart(data_dir: &Path, flags: &[&str]) {
    let first = AllInOne::start(data_dir, flags);
    let created = first.create_delivery();
    let task = created["dropoff"]["@id"].as_str().unwrap();
    let members = ["store", "demo_client", "operator_client"].map(|key| first.ready[key].clone());
    assert!(first.stop("-TERM").success());
    assert!(!data_dir.join("ready.json").exists());

    let second = AllInOne::start(data_dir, flags);

    assert_eq!(
        ["store", "demo_client", "operator_client"].map(|key| second.ready[key].clone()),
        members
    );
    assert_eq!(second.call(task, &[])["status"], "TODO");
}

#[test]
fn a_data_directory_in_use_is_rejected_with_one_line() {
    let first = AllInOne::start_new(&[]);

    let second = first.run(&[
        "start",
        "--rest-listen=127.0.0.1:0",
        "--core-listen=127.0.0.1:0",
    ]);

    assert_eq!(second.status.code(), Some(1));
    let error = stderr(&second);
    assert!(error.contains("another `delivery` is running"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_port_in_use_is_rejected_with_one_line_that_names_the_flag() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    for (flag, other) in [
        ("--rest-listen", "--core-listen"),
        ("--core-listen", "--rest-listen"),
    ] {
        let data_dir = tempfile::tempdir().unwrap();

        let output = run_delivery(
            data_dir.path(),
            &["start", flag, &taken, other, "127.0.0.1:0"],
        );

        assert_eq!(output.status.code(), Some(1));
        let error = stderr(&output);
        assert!(error.contains(flag) && error.contains(&taken), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_command_ignores_server_settings_and_rejects_flags_before_it() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let path = data_dir.to_str().unwrap();
    let store = running.text("/store");

    let output = command()
        .args(["stores", "--data-dir", path, "list", "--json"])
        .env("DELIVERY_REST_LISTEN", "nowhere")
        .env("DELIVERY_CURRENCY", "shells")
        .env("DELIVERY_DATA_DIR", "/nowhere")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains(store), "{printed}");

    let misplaced = command()
        .args(["--platform-name", "stores", "stores", "list"])
        .output()
        .unwrap();
    assert_eq!(misplaced.status.code(), Some(2));
    let error = stderr(&misplaced);
    assert!(
        error.starts_with(
            "error: the subcommand 'stores' cannot be used with '--platform-name <NAME>'\n"
        ),
        "{error}"
    );
}

#[test]
fn the_settings_resource_has_the_values_of_the_flags() {
    let data_dir = tempfile::tempdir().unwrap();
    let flags = [
        "--platform-name=Coursiers",
        "--timezone=America/Toronto",
        "--locale=fr-CA",
        "--country=CA",
        "--currency=CAD",
        "--map-center=45.5,-73.567",
    ];

    let running = AllInOne::start(data_dir.path(), &flags);

    assert_eq!(
        running.call("/api/settings", &[]),
        json!({
            "@context": "/api/contexts/Settings",
            "@id": "/api/settings",
            "@type": "Settings",
            "brand_name": "Coursiers",
            "country": "CA",
            "locale": "fr-CA",
            "timezone": "America/Toronto",
            "currency_code": "CAD",
            "latlng": "45.5,-73.567",
        })
    );
}

#[test]
fn help_shows_examples() {
    let output = command().arg("--help").output().unwrap();

    let help = String::from_utf8_lossy(&output.stdout);
    for part in ["Examples:", "--rest-listen", "DELIVERY_DATA_DIR", "stores"] {
        assert!(help.contains(part), "{part}");
    }
}
