//! `core-service bootstrap`: once for a platform, again only on request; and `delivery migrate`.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    postgres::Postgres,
    program::{self, PROGRAMS},
    startup_errors::{assert_error, migrate},
};

#[test]
fn a_platform_over_sqlite_is_bootstrapped_once() {
    let directory = tempfile::tempdir().unwrap();

    assert_bootstrapped_once(directory.path(), &sqlite_url(directory.path()));
}

#[test]
fn a_platform_over_postgresql_is_bootstrapped_once() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();

    assert_bootstrapped_once(directory.path(), &postgres.url());
}

fn sqlite_url(directory: &Path) -> String {
    format!("sqlite://{}?mode=rwc", directory.join("sqlite").display())
}

fn assert_bootstrapped_once(directory: &Path, database_url: &str) {
    let bootstrap = |more: &[&str]| {
        let mut command = program::command(&PROGRAMS.core);
        command
            .arg("bootstrap")
            .args(["--database-url", database_url, "--master-key-file"])
            .arg(directory.join("master.key"))
            .args(more);
        command
    };

    // Concurrent: one of them sets the platform up, the other says that it is set up.
    let mut outputs = run_concurrently([bootstrap(&[]), bootstrap(&[])]);
    outputs.sort_by_key(|output| output.status.code());
    let [first, second] = outputs;
    let first = program::parse(&first);
    let refused = |output: &Output| {
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(output.stdout, b"");
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            format!(
                "core-service: this platform has been set up already, with the operator's client \
                 {}: use its secret, or create further clients for operators and dispatchers with \
                 core-service bootstrap --again if that secret is lost\n",
                api_key(&first)
            )
        );
    };
    refused(&second);
    refused(&program::output(&mut bootstrap(&[])));

    let again = program::output(&mut bootstrap(&["--again"]));
    let second = program::parse(&again);
    assert_ne!(api_key(&second), api_key(&first));
    let log = String::from_utf8_lossy(&again.stderr);
    for part in [
        "WARN",
        "another operator's client was created",
        api_key(&first),
        api_key(&second),
        "delivery clients disable",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
}

#[test]
fn the_files_of_a_bootstrap_are_readable_by_their_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("secrets");
    let bootstrap = || {
        let mut command = program::command(&PROGRAMS.core);
        command
            .args(["bootstrap", "--again", "--database-url"])
            .arg(sqlite_url(directory.path()))
            .arg("--master-key-file")
            .arg(directory.path().join("master.key"))
            .arg("--output")
            .arg(&output);
        command
    };
    let files = ["clients.json", "dispatcher-secret"].map(|name| output.join(name));
    let [clients, secret] = &files;

    let printed = program::output(&mut bootstrap());

    assert!(printed.status.success(), "{printed:?}");
    assert_eq!(
        String::from_utf8(printed.stdout).unwrap(),
        format!("{}\n{}\n", clients.display(), secret.display())
    );
    for file in &files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(fs::read_dir(&output).unwrap().count(), files.len());
    let clients_json: Value = serde_json::from_slice(&fs::read(clients).unwrap()).unwrap();
    assert_eq!(
        fs::read_to_string(secret).unwrap().trim_end(),
        clients_json["dispatcher_client"]["api_secret"]
    );
    assert_error(
        &mut bootstrap(),
        1,
        &format!(
            "core-service: {} exists: move it away, or name another directory with --output",
            clients.display()
        ),
    );
}

fn run_concurrently(commands: [Command; 2]) -> [Output; 2] {
    commands
        .map(|mut command| std::thread::spawn(move || program::output(&mut command)))
        .map(|thread| thread.join().unwrap())
}

fn api_key(clients: &Value) -> &str {
    clients["operator_client"]["api_key"].as_str().unwrap()
}

#[test]
fn migrations_are_listed_by_a_dry_run_and_applied_once() {
    let directory = tempfile::tempdir().unwrap();
    let postgres = Postgres::start();
    let urls = std::iter::once(sqlite_url(directory.path()));
    for url in urls.chain(postgres.iter().map(Postgres::url)) {
        let run = |flags: &[&str]| {
            let mut command = migrate();
            let output = program::output(command.args(["--database-url", &url]).args(flags));
            assert!(output.status.success(), "{output:?}");
            assert_eq!(output.stdout, b"");
            String::from_utf8(output.stderr).unwrap()
        };

        let listed = run(&["--dry-run"]);
        let count = listed.lines().count() - 1;
        assert!(listed.starts_with("0001_initial_schema\n"), "{listed}");
        assert!(
            listed.ends_with(&format!("\n{count} to apply\n")),
            "{listed}"
        );

        assert_eq!(run(&[]), listed.replace(" to apply", " applied"));
        assert_eq!(run(&["--dry-run"]), "0 to apply\n");
        assert_eq!(run(&[]), "0 applied\n");
    }
}
