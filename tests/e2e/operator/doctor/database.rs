//! Checks of the database and of the master key.

use std::{fs, path::Path};

use serde_json::json;

use super::{Report, as_strs, create};
use crate::harness::{
    Database,
    all_in_one::{AllInOne, program, run_delivery, stderr},
    run_sql,
};

#[test]
fn a_wrong_or_missing_master_key_is_a_failure() {
    for database in Database::each() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = directory.path().join("data");
        let other = directory.path().join("other");
        let flags = Vec::from_iter(database.flag());
        let flags = as_strs(&flags);
        create(&data_dir, &flags);
        create(&other, &[]);
        let key = data_dir.join("master.key");

        fs::copy(other.join("master.key"), &key).unwrap();
        let file = key.display();
        let assert_failure = |message: &str| {
            Report::of(&data_dir, &flags).assert("master key", "failure", message);
            let start = [
                "start",
                "--rest-listen=127.0.0.1:0",
                "--core-listen=127.0.0.1:0",
            ];
            let refused = run_delivery(&data_dir, &[&start[..], &flags].concat());
            assert_eq!(refused.status.code(), Some(1));
            assert_eq!(stderr(&refused), format!("{message}\n"));
        };
        // The advice names only flags that the all-in-one has.
        assert_failure(&format!(
            "this database belongs to another master key than {file}: put its own into that file, from a backup or {file}.removed, or name the right data directory with --data-dir, or the database that belongs to this key"
        ));

        fs::remove_file(&key).unwrap();
        assert_failure(&format!(
            "this database has a master key, but {file} does not exist: restore it from your backup, or name the right data directory with --data-dir"
        ));
        assert!(!key.exists());
    }
}

#[test]
fn a_newer_schema_is_a_failure_and_one_to_be_migrated_a_warning() {
    for database in Database::each() {
        let data_dir = tempfile::tempdir().unwrap();
        let data_dir = data_dir.path();
        let flags = Vec::from_iter(database.flag());
        let flags = as_strs(&flags);
        create(data_dir, &flags);

        let insert = "INSERT INTO _sqlx_migrations
            (version, description, success, checksum, execution_time)
            VALUES (9999, 'later', true, '', 0)";
        execute(&database, data_dir, insert);
        let report = Report::of(data_dir, &flags);
        report.assert(
            "migrations",
            "failure",
            "the schema is newer than this program",
        );

        execute(&database, data_dir, "DELETE FROM _sqlx_migrations");
        let report = Report::of(data_dir, &flags);
        let pending = "not applied yet: 0001_initial_schema";
        report.assert("migrations", "warning", pending);
    }
}

#[test]
fn a_damaged_database_file_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let running = AllInOne::start(&data_dir, &[]);
    running.create_delivery();
    assert!(running.stop("-TERM").success());

    let database = data_dir.join("delivery.sqlite");
    let mut bytes = fs::read(&database).unwrap();
    // A page, which has 4 KiB.
    let middle = bytes.len() / 8192 * 4096;
    bytes[middle..middle + 4096].fill(0xff);
    fs::write(&database, bytes).unwrap();
    Report::of(&data_dir, &[]).assert("database file", "failure", "is damaged");
}

#[test]
fn a_postgresql_that_cannot_be_used_is_a_failure_and_unusual_settings_a_warning() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let unreachable = ["--database-url=postgres://delivery@127.0.0.1:1/delivery"];
    let report = Report::of(data_dir, &unreachable);
    let refused = "cannot connect to PostgreSQL at 127.0.0.1:1 (Connection refused";
    report.assert("database", "failure", refused);
    for name in ["database settings", "database file", "migrations", "clock"] {
        report.assert(name, "skipped", "the database is not open");
    }
    let several = ["--database-url=postgres://a,b/delivery"];
    let report = Report::of(data_dir, &several);
    report.assert("database", "failure", "has several hosts");

    let Some(Database { url: Some(url) }) = Database::unpooled_postgres() else {
        return;
    };
    let flag = format!("--database-url={url}");
    let key = data_dir.join("core.key");
    let as_core = format!("--master-key-file={}", key.display());
    let report = Report::of(data_dir, &[&flag, &as_core]);
    report.assert("data directory", "skipped", "a core has no data directory");
    report.assert("migrations", "failure", "has not been bootstrapped");
    report.assert("master key", "failure", "core.key does not exist");
    let report = Report::of(data_dir, &[&flag]);
    report.assert("migrations", "warning", "there is no schema yet");

    let serializable = format!("{flag}&options=-cdefault_transaction_isolation=serializable");
    let report = Report::of(data_dir, &[&serializable, "--database-connections=297"]);
    assert_eq!(
        *report.check("database settings"),
        json!({
            "name": "database settings",
            "status": "warning",
            "found": "PostgreSQL permits 297 connections, and each core opens 297; transactions have the isolation serializable, and are retried more often",
            "fix": "raise max_connections (or the limit of the role or the database), or lower --database-connections; set default_transaction_isolation = 'read committed'",
        })
    );
    let unflushed = format!("{flag}&options=-csynchronous_commit=off");
    let report = Report::of(data_dir, &[&unflushed]);
    let lost =
        "PostgreSQL runs with synchronous_commit = off: acknowledged deliveries could be lost";
    report.assert("database", "failure", lost);
    let read_only = format!("{flag}&options=-cdefault_transaction_read_only=on");
    let report = Report::of(data_dir, &[&read_only]);
    report.assert("database", "failure", "this PostgreSQL accepts no writes");
}

/// Changes a database of a stopped platform.
fn execute(database: &Database, data_dir: &Path, sql: &str) {
    let Some(url) = &database.url else {
        let script = "import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute(sys.argv[2])
database.commit()";
        let mut python = program("python3");
        python.args(["-c", script]);
        python.arg(data_dir.join("delivery.sqlite")).arg(sql);
        assert!(python.status().unwrap().success());
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(run_sql(url, sql));
}
