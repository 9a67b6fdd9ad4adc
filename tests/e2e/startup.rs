//! The start-up contract: what scripts and people may rely on when they run `delivery`.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use serde_json::{Value, json};

use crate::harness::{
    Database,
    all_in_one::{AllInOne, command, operator, program, stderr},
};

#[test]
fn a_start_prints_three_lines_that_work_as_pasted_and_then_that_it_is_ready() {
    let data_dir = tempfile::tempdir().unwrap();

    let running = AllInOne::start(data_dir.path(), &[]);

    let answers: Vec<Value> = running
        .printed
        .iter()
        .filter(|line| line.starts_with("curl "))
        .map(|line| {
            let output = Command::new("sh").args(["-c", line]).output().unwrap();
            serde_json::from_slice(&output.stdout).unwrap()
        })
        .collect();
    let [token, created, choices] = answers.as_slice() else {
        panic!("{:?}", running.printed);
    };
    assert_eq!(token["token_type"], "Bearer");
    assert_eq!(created["@type"], "http://schema.org/ParcelDelivery");
    assert!(choices["choices"].is_array(), "{choices}");
}

#[test]
fn ready_json_tells_its_owner_alone_where_and_by_whom_the_platform_is_called() {
    let data_dir = tempfile::tempdir().unwrap();

    let running = AllInOne::start(data_dir.path(), &["start"]);

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
    for file in ["ready.json", "master.key"] {
        let mode = fs::metadata(data_dir.path().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

#[test]
fn sigterm_and_ctrl_c_end_it_with_status_0() {
    for signal in ["-TERM", "-INT"] {
        let data_dir = tempfile::tempdir().unwrap();
        let running = AllInOne::start(data_dir.path(), &[]);

        assert_eq!(running.stop(signal).code(), Some(0), "{signal}");
    }
}

#[test]
fn a_restart_keeps_what_was_created_and_the_demos_secrets() {
    let data_dir = tempfile::tempdir().unwrap();
    keeps_over_a_restart(data_dir.path(), &[]);
}

#[test]
fn a_restart_on_postgres_keeps_what_was_created_and_the_demos_secrets() {
    let Some(database) = Database::postgres() else {
        return;
    };
    let data_dir = tempfile::tempdir().unwrap();
    let url = format!("--database-url={}", database.url.unwrap());
    keeps_over_a_restart(data_dir.path(), &[&url]);
}

fn keeps_over_a_restart(data_dir: &Path, flags: &[&str]) {
    let first = AllInOne::start(data_dir, flags);
    let created = first.create_delivery();
    let task = created["dropoff"]["@id"].as_str().unwrap();
    let keys = ["store", "demo_client", "operator_client"].map(|key| first.ready[key].clone());
    assert!(first.stop("-TERM").success());
    assert!(!data_dir.join("ready.json").exists());

    let second = AllInOne::start(data_dir, flags);

    assert_eq!(
        ["store", "demo_client", "operator_client"].map(|key| second.ready[key].clone()),
        keys
    );
    assert_eq!(second.call(task, &[])["status"], "TODO");
}

#[test]
fn a_data_directory_in_use_is_refused_by_a_sentence() {
    let data_dir = tempfile::tempdir().unwrap();
    let _first = AllInOne::start(data_dir.path(), &[]);

    let second = operator(
        data_dir.path(),
        &[
            "start",
            "--rest-listen=127.0.0.1:0",
            "--core-listen=127.0.0.1:0",
        ],
    );

    assert_eq!(second.status.code(), Some(1));
    let sentence = stderr(&second);
    assert!(
        sentence.contains("another `delivery` is running"),
        "{sentence}"
    );
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
}

#[test]
fn a_port_in_use_is_refused_by_a_sentence_that_names_the_flag() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (flag, other) in [
        ("--rest-listen", "--core-listen"),
        ("--core-listen", "--rest-listen"),
    ] {
        let data_dir = tempfile::tempdir().unwrap();

        let output = operator(
            data_dir.path(),
            &["start", flag, &taken, other, "127.0.0.1:0"],
        );

        assert_eq!(output.status.code(), Some(1));
        let sentence = stderr(&output);
        assert!(
            sentence.contains(flag) && sentence.contains(&taken),
            "{sentence}"
        );
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }
}

#[test]
fn an_operators_command_finds_the_data_directory_on_either_side_and_heeds_its_own_settings_only() {
    let data_dir = tempfile::tempdir().unwrap();
    let running = AllInOne::start(data_dir.path(), &[]);
    let path = data_dir.path().to_str().unwrap();
    let store = running.text("/store");

    for arguments in [
        ["--data-dir", path, "stores", "list", "--json"],
        ["stores", "--data-dir", path, "list", "--json"],
    ] {
        let output = command()
            .args(arguments)
            .env("DELIVERY_REST_LISTEN", "nowhere")
            .env("DELIVERY_CURRENCY", "shells")
            .env("DELIVERY_DATA_DIR", "/nowhere")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(store), "{printed}");
    }

    let misplaced = command()
        .args(["--platform-name", "stores", "stores", "list"])
        .output()
        .unwrap();
    assert_eq!(misplaced.status.code(), Some(2));
    let sentence = stderr(&misplaced);
    assert!(
        sentence.starts_with(
            "error: --platform-name stands before `stores`: the flags of a command go after it\n"
        ),
        "{sentence}"
    );
}

#[test]
fn what_the_platform_is_started_with_is_what_its_settings_say() {
    let data_dir = tempfile::tempdir().unwrap();
    let flags = [
        "--platform-name=Coursiers",
        "--timezone=America/Toronto",
        "--locale=fr-CA",
        "--country=CA",
        "--currency=CAD",
        "--latlng=45.5,-73.567",
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

#[test]
fn the_readmes_way_to_a_signed_notification_works_as_pasted() {
    let directory = tempfile::tempdir().unwrap();
    let _running = AllInOne::start(&directory.path().join("delivery-data"), &[]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let readme = include_str!("../../README.md");
    let (_, after) = readme.split_once("```sh\n").unwrap();
    let (pasted, _) = after.split_once("```\n").unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_delivery")).parent().unwrap();
    let pasted = pasted
        .replace("$PWD/target/release", programs.to_str().unwrap())
        .replace("9000", &port);

    let output = program("sh")
        .args(["-euc", &pasted])
        .current_dir(directory.path())
        .output()
        .unwrap();

    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", stderr(&output));
    assert!(
        printed.contains(r#""event":"delivery.completed"}} genuine"#),
        "{printed}"
    );
}
