//! `delivery doctor`: the checks of a healthy platform, and each failure with its fix.

mod report;

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use jiff::{SignedDuration, tz::TimeZone};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::json;

use self::report::Report;
use crate::harness::{
    Database,
    all_in_one::{AllInOne, command, program, run_delivery, stderr},
    run_sql,
};

fn as_strs(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

/// Runs a platform once, so that its data directory and its database exist.
fn create(data_dir: &Path, flags: &[&str]) {
    assert!(AllInOne::start(data_dir, flags).stop("-TERM").success());
}

#[test]
fn a_running_platform_has_no_failure_and_is_not_changed_when_stopped() {
    for database in Database::each() {
        let data_dir = tempfile::tempdir().unwrap();
        let data_dir = data_dir.path();
        let flags = Vec::from_iter(database.flag());
        let flags = as_strs(&flags);
        let expected = [
            ("database", "ok"),
            ("migrations", "ok"),
            ("clock", "ok"),
            ("master key", "ok"),
            ("gRPC certificate", "ok"),
        ];

        let running = AllInOne::start(data_dir, &flags);
        running.create_delivery();
        let report = Report::of(data_dir, &flags);
        assert_eq!(report.statuses(), expected);
        let version = report.0["version"].as_str().unwrap();
        assert!(version.starts_with(env!("CARGO_PKG_VERSION")), "{version}");
        assert!(running.stop("-TERM").success());

        let before = contents(data_dir);
        assert_eq!(Report::of(data_dir, &flags).statuses(), expected);
        assert_eq!(contents(data_dir), before);
    }
}

/// The files and folders of a directory; a folder has no content here.
fn contents(directory: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let files = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let content = |path: &Path| {
        if path.is_file() {
            fs::read(path).unwrap()
        } else {
            Vec::new()
        }
    };
    let mut files: Vec<_> = files
        .map(|file| (file.file_name(), content(&file.path())))
        .collect();
    files.sort();
    files
}

#[test]
fn before_the_first_start_each_check_has_a_line_with_its_fix() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");

    let output = run_delivery(&missing, &["doctor"]);

    // A start would create what is missing.
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
    let fix =
        "start `delivery`, which creates it, or name the platform's directory with --data-dir";
    let key = missing.join("master.key");
    let key = key.display();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!(
            "check             status   found\n\
             database          warning  there is none yet: {fix}\n\
             master key        warning  {key} does not exist yet: {fix}\n\
             gRPC certificate  ok       none: the gRPC API has no TLS\n"
        )
    );
    assert_eq!(contents(directory.path()), []);
}

#[test]
fn a_healthy_core_has_no_failure() {
    for database in Database::each() {
        let data_dir = tempfile::tempdir().unwrap();
        let flags = Vec::from_iter(database.flag());
        create(data_dir.path(), &as_strs(&flags));
        let sqlite = "--database-url=sqlite://delivery.sqlite".to_owned();
        let mut command: Command = command();
        command.args(["doctor", "--json", "--master-key-file=master.key"]);
        command.arg(flags.first().unwrap_or(&sqlite));

        let report = Report::read(&command.current_dir(data_dir.path()).output().unwrap());

        assert_eq!(report.0["failures"], 0, "{:#}", report.0);
        let keys = "master.key has all keys of the database";
        report.assert("master key", "ok", keys);
    }
}

#[test]
fn an_unreadable_database_url_file_is_a_failure_of_its_check_only() {
    let data_dir = tempfile::tempdir().unwrap();
    create(data_dir.path(), &[]);

    let report = Report::of(data_dir.path(), &["--database-url-file=/nowhere/url"]);

    assert_eq!(report.0["failures"], 1, "{:#}", report.0);
    report.assert("database", "failure", "/nowhere/url");
    report.assert("master key", "ok", "the database is not open");
}

#[test]
fn settings_are_read_as_by_the_programs() {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, _] = write_certificate(directory.path(), 90);
    let run = |arguments: &[&str]| {
        let mut command: Command = command();
        command.args(["doctor", "--json"]).args(arguments);
        command.arg("--data-dir").arg(directory.path());
        command.env("DELIVERY_TLS_CERTIFICATE", &certificate);
        command.env("DELIVERY_TLS_KEY", "/nowhere/core.key");
        command.output().unwrap()
    };

    // The variables are those of a core.
    let core = Report::read(&run(&["--master-key-file=/nowhere/master.key"]));
    core.assert("gRPC certificate", "failure", "/nowhere/core.key");
    Report::read(&run(&[])).assert("gRPC certificate", "ok", "none");
    let output = run(&["--database-url=postgres://delivery:SECRET@127.0.0.1/delivery"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).contains("SECRET"));
}

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
fn a_database_that_cannot_be_used_is_a_failure() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    let unreachable = ["--database-url=postgres://delivery@127.0.0.1:1/delivery"];
    let report = Report::of(data_dir, &unreachable);
    assert_eq!(
        *report.check("database"),
        json!({
            "name": "database",
            "status": "failure",
            "found": "cannot open the database: cannot connect to PostgreSQL at 127.0.0.1:1 (Connection refused (os error 111)): start it, or correct the database's URL",
            "fix": null,
        })
    );
    let unopened = ["database", "master key", "gRPC certificate"];
    let names: Vec<_> = report
        .statuses()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, unopened);
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
    report.assert("migrations", "failure", "has not been bootstrapped");
    report.assert("master key", "failure", "core.key does not exist");
    let report = Report::of(data_dir, &[&flag]);
    report.assert("migrations", "warning", "there is no schema yet");

    let unflushed = format!("{flag}&options=-csynchronous_commit=off");
    let report = Report::of(data_dir, &[&unflushed]);
    let lost =
        "PostgreSQL runs with synchronous_commit = off: acknowledged deliveries could be lost";
    report.assert("database", "failure", lost);
    let read_only = format!("{flag}&options=-cdefault_transaction_read_only=on");
    let report = Report::of(data_dir, &[&read_only]);
    report.assert("database", "failure", "this PostgreSQL accepts no writes");
}

#[test]
fn sqlite_files_that_this_user_cannot_write_are_a_failure() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    create(data_dir, &[]);
    let file = data_dir.join("delivery.sqlite");
    let set_mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let check = || {
        // Root may write to every file.
        let script = "[ \"$(id -u)\" != 0 ] || set -- setpriv --bounding-set=-dac_override \"$@\"; exec \"$@\"";
        let mut shell = program("sh");
        shell
            .args(["-c", script, "sh"])
            .arg(command().get_program());
        shell.args(["doctor", "--json", "--data-dir"]).arg(data_dir);
        Report::read(&shell.output().unwrap())
    };
    let found = format!(
        "cannot open the database: this user cannot write to {} (Permission denied (os error 13)): let the user of the platform own the file and its directory, and mount them for writes",
        file.display()
    );

    check().assert("database", "ok", "it accepts writes");
    for (path, read_only, writable) in [(&*file, 0o400, 0o600), (data_dir, 0o500, 0o700)] {
        set_mode(path, read_only);
        let report = check();
        set_mode(path, writable);
        report.assert("database", "failure", &found);
    }
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

/// Writes a certificate of 127.0.0.1 that expires `days` days from now, and its key; returns their
/// paths.
fn write_certificate(directory: &Path, days: i64) -> [String; 2] {
    let end = delivery::Clock::system().now() + SignedDuration::from_hours(days * 24);
    let end = end.to_zoned(TimeZone::UTC);
    let (month, day) = (end.month(), end.day());
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2020, 1, 1);
    let unsigned = |number: i8| u8::try_from(number).unwrap();
    params.not_after = date_time_ymd(end.year().into(), unsigned(month), unsigned(day));
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.join(format!("{days}.{name}"));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    [
        write("pem", &certificate.pem()),
        write("key", &key.serialize_pem()),
    ]
}

#[test]
fn an_expired_certificate_is_a_failure_and_one_that_ends_soon_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let check = |certificate: &str, key: &str| {
        let flags = [
            format!("--grpc-tls-certificate={certificate}"),
            format!("--grpc-tls-key={key}"),
        ];
        Report::of(directory, &as_strs(&flags))
    };
    for (days, status, found) in [
        (90, "ok", "is valid until"),
        (7, "warning", "is valid until"),
        (-7, "failure", "expired at"),
    ] {
        let [certificate, key] = write_certificate(directory, days);
        let found = format!("{certificate} {found}");
        check(&certificate, &key).assert("gRPC certificate", status, &found);
    }
    let [certificate, _] = write_certificate(directory, 92);
    let [_, other_key] = write_certificate(directory, 93);
    let report = check(&certificate, &other_key);
    report.assert("gRPC certificate", "failure", "does not match certificate");
}
