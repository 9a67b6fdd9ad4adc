//! `delivery doctor`: the checks of a healthy platform, and each failure with its fix.

mod database;
mod network;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::harness::{
    Database,
    all_in_one::{AllInOne, command, program, run_delivery, stderr},
};

/// The checks whose results depend on the host.
const HOST_CHECKS: [&str; 3] = ["disk space", "file descriptors", "zone data"];

/// The report of `delivery doctor --json`, whose exit status agrees with it.
struct Report(Value);

impl Report {
    fn of(data_dir: &Path, arguments: &[&str]) -> Self {
        let arguments = [&["doctor", "--json"], arguments].concat();
        Self::read(&run_delivery(data_dir, &arguments))
    }

    fn read(output: &Output) -> Self {
        let report = serde_json::from_slice(&output.stdout);
        let report: Value = report.unwrap_or_else(|_| panic!("{}", stderr(output)));
        let count = report["checks"].as_array().unwrap().len();
        match report["failures"].as_u64().unwrap() {
            0 => {
                assert_eq!(output.status.code(), Some(0), "{report:#}");
                assert_eq!(stderr(output), "");
            }
            failures => {
                assert_eq!(output.status.code(), Some(1), "{report:#}");
                let expected = format!("{failures} of {count} checks failed\n");
                assert_eq!(stderr(output), expected);
            }
        }
        Self(report)
    }

    fn check(&self, name: &str) -> &Value {
        let checks = self.0["checks"].as_array().unwrap();
        let found = checks.iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {:#}", self.0))
    }

    /// Name and status of each check but those of the host.
    fn statuses(&self) -> Vec<(&str, &str)> {
        let checks = self.0["checks"].as_array().unwrap().iter();
        let statuses = checks.map(|check| {
            let text = |member: &str| check[member].as_str().unwrap();
            (text("name"), text("status"))
        });
        statuses
            .filter(|(name, _)| !HOST_CHECKS.contains(name))
            .collect()
    }

    #[track_caller]
    fn assert(&self, name: &str, status: &str, found: &str) {
        let check = self.check(name);
        assert_eq!(check["status"], status, "{check}");
        let text = check["found"].as_str().unwrap();
        assert!(text.contains(found), "{check}");
    }
}

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
        let is_sqlite = database.url.is_none();
        let only = |is_checked| if is_checked { "ok" } else { "skipped" };
        let expected = |platform| {
            vec![
                ("data directory", "ok"),
                ("platform", platform),
                ("database", "ok"),
                ("master key", "ok"),
                ("database settings", only(!is_sqlite)),
                ("database file", only(is_sqlite)),
                ("migrations", "ok"),
                ("clock", only(!is_sqlite)),
                ("geocoder gazetteer", "ok"),
                ("router", "skipped"),
                ("public URL", "skipped"),
                ("REST certificate", "skipped"),
                ("gRPC certificate", "skipped"),
                ("egress policy", "ok"),
            ]
        };

        let running = AllInOne::start(data_dir, &flags);
        running.create_delivery();
        let report = Report::of(data_dir, &flags);
        assert_eq!(report.statuses(), expected("ok"));
        let version = report.0["version"].as_str().unwrap();
        assert!(version.starts_with(env!("CARGO_PKG_VERSION")), "{version}");
        let base_url = running.text("/base_url");
        let ready = format!("{base_url} is ready, process {}", running.process.id());
        report.assert("platform", "ok", &ready);
        assert!(running.stop("-TERM").success());

        let before = contents(data_dir);
        assert_eq!(Report::of(data_dir, &flags).statuses(), expected("skipped"));
        assert_eq!(contents(data_dir), before);
    }
}

/// The files of a directory.
fn contents(directory: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let files = fs::read_dir(directory).unwrap().map(Result::unwrap);
    let mut files: Vec<_> = files
        .map(|file| (file.file_name(), fs::read(file.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn each_check_has_a_line_and_each_fix_one_below_it() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");

    let output = run_delivery(&missing, &["doctor"]);

    // A start would create what is missing.
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
    let printed = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    let missing = missing.display();
    assert_eq!(
        lines[..2],
        [
            format!("warning  data directory      {missing} does not exist yet"),
            "         fix: start `delivery`, which creates it, or name the platform's directory with --data-dir".to_owned(),
        ]
    );
    let first_words = |line: &&str| line.split_whitespace().next().unwrap().to_owned();
    for word in lines.iter().map(first_words) {
        let is_known = ["ok", "skipped", "warning", "FAILURE", "fix:"].contains(&&*word);
        assert!(is_known, "{printed}");
    }
    assert_eq!(contents(directory.path()), []);
}

#[test]
fn an_unusable_data_directory_is_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    Report::of(&file, &[]).assert("data directory", "failure", "is not a directory");
    let below_missing = directory.path().join("missing/data");
    let report = Report::of(&below_missing, &[]);
    report.assert("data directory", "failure", "cannot be created");

    let restoring = directory.path().join("restoring");
    fs::create_dir(&restoring).unwrap();
    fs::write(restoring.join("delivery.sqlite-restoring"), "").unwrap();
    let report = Report::of(&restoring, &[]);
    report.assert("data directory", "failure", "a backup was being restored");
    report.assert("database", "warning", "there is none yet");

    let crashed = directory.path().join("crashed");
    let mut running = AllInOne::start(&crashed, &[]);
    running.process.kill().unwrap();
    running.process.wait().unwrap();
    let report = Report::of(&crashed, &[]);
    report.assert("platform", "warning", "ended without a shutdown");
    // What it has acknowledged is in the log.
    report.assert("database file", "ok", "is complete and consistent");
}

#[test]
fn a_low_limit_of_file_descriptors_is_a_warning() {
    let data_dir = tempfile::tempdir().unwrap();
    let run = |script: &str| {
        let mut shell = program("sh");
        shell.args(["-c", script, command().get_program().to_str().unwrap()]);
        shell.arg(data_dir.path());
        Report::read(&shell.output().unwrap())
    };

    let report = run("ulimit -n 512; exec \"$0\" doctor --json --data-dir \"$1\"");

    let found = "the limit of 512 is enough for 384 of the gateway's 8192 connections";
    report.assert("file descriptors", "warning", found);
}

/// Runs the doctor for a healthy core in the directory of its key.
fn check_core(data_dir: &Path, database_flag: &str) -> Report {
    let mut command: Command = command();
    command.args(["doctor", "--json", "--master-key-file=master.key"]);
    command.args([database_flag, "--public-url=https://127.0.0.1:1"]);
    Report::read(&command.current_dir(data_dir).output().unwrap())
}

#[test]
fn a_healthy_core_has_no_failure_even_if_it_cannot_reach_the_public_url() {
    for database in Database::each() {
        let data_dir = tempfile::tempdir().unwrap();
        let flags = Vec::from_iter(database.flag());
        create(data_dir.path(), &as_strs(&flags));
        let sqlite = "--database-url=sqlite://delivery.sqlite".to_owned();

        let report = check_core(data_dir.path(), flags.first().unwrap_or(&sqlite));

        assert_eq!(report.0["failures"], 0, "{:#}", report.0);
        report.assert("data directory", "skipped", "a core has no data directory");
        report.assert("file descriptors", "skipped", "a core has few connections");
        report.assert("geocoder gazetteer", "ok", "addresses.sqlite has addresses");
        report.assert("public URL", "warning", "cannot connect to 127.0.0.1:1");
        report.assert("egress policy", "ok", "https only");
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

/// Puts a pipe that nothing is written to in the place of a file, as if its disk did not respond.
fn hang(file: &Path) {
    let _ = fs::remove_file(file);
    let mut mkfifo = program("mkfifo");
    mkfifo.arg("--mode=600").arg(file);
    assert!(mkfifo.status().unwrap().success());
}

#[test]
fn a_file_that_cannot_be_read_in_time_is_a_failure_of_its_check_only() {
    let data_dir = tempfile::tempdir().unwrap();
    let data_dir = data_dir.path();
    create(data_dir, &[]);
    hang(&data_dir.join("ready.json"));
    let database_url = data_dir.join("database-url");
    hang(&database_url);
    let timeout = "there is no result within 10s";

    let report = Report::of(data_dir, &[]);

    report.assert("platform", "failure", timeout);
    report.assert("migrations", "ok", "all are applied");
    report.assert("geocoder gazetteer", "ok", "has addresses");

    let flag = format!("--database-url-file={}", database_url.display());
    let report = Report::of(data_dir, &[&flag]);
    report.assert("database", "failure", timeout);
    report.assert("geocoder gazetteer", "ok", "has addresses");
}

#[test]
fn settings_are_read_as_by_the_programs() {
    let data_dir = tempfile::tempdir().unwrap();
    let run = |variable: &str, value: &str, flags: &[&str]| -> Output {
        let mut command: Command = command();
        command.args(["doctor", "--json"]).args(flags);
        command.arg("--data-dir").arg(data_dir.path());
        command.env(variable, value).output().unwrap()
    };

    let output = run("DELIVERY_OSRM_URL", "http://127.0.0.1:1", &[]);
    Report::read(&output).assert("router", "warning", "unavailable");
    let output = run("DELIVERY_DATABASE_CONNECTIONS", "none", &[]);
    assert_eq!(output.status.code(), Some(2));
    let error = "error: invalid value 'none' for '--database-connections <NUMBER>'";
    assert!(stderr(&output).starts_with(error), "{}", stderr(&output));
    let secret = "--database-url=postgres://delivery:SECRET@127.0.0.1/delivery";
    let output = run("DELIVERY_NO_DEMO", "yes", &[secret]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).contains("SECRET"));
}
