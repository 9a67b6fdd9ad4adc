//! `delivery doctor` on a disk that is full, and beside a PostgreSQL whose clock differs.

use std::process::Output;

use serde_json::Value;

use crate::{
    all_in_one::AllInOne,
    all_processors, clock,
    postgres::Postgres,
    program::{self, PROGRAMS},
};

/// The status of a check in a report.
fn status(output: &Output, name: &str) -> String {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap();
    check["status"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn little_disk_space_is_a_warning_and_a_full_disk_a_failure() {
    let _processors = all_processors().await;
    let Some((mut platform, mut disk)) = AllInOne::start_on_a_small_disk().await else {
        return;
    };
    let doctor = |platform: &AllInOne| platform.operator(&["doctor", "--json"]);

    let output = doctor(&platform);
    assert_eq!(status(&output, "disk space"), "warning");
    assert_eq!(output.status.code(), Some(0));

    disk.fill();
    let output = doctor(&platform);
    assert_eq!(status(&output, "disk space"), "failure");
    assert_eq!(output.status.code(), Some(1));

    disk.free();
    assert!(platform.server.terminate().await.success());
}

#[test]
fn clocks_that_differ_are_a_warning_and_by_more_than_tokens_tolerate_a_failure() {
    let Some(library) = clock::find_library("another clock in PostgreSQL") else {
        return;
    };
    for (ahead, expected) in [("+0", "ok"), ("-10", "warning"), ("+60", "failure")] {
        let environment = clock::shifted(&library, &format!("{ahead}s"));
        let Some(postgres) = Postgres::start_with_environment(&environment) else {
            return;
        };
        let mut doctor = program::command(&PROGRAMS.delivery);
        doctor.args(["doctor", "--json", "--data-dir=/nowhere"]);
        doctor.arg(format!("--database-url={}", postgres.url()));

        let output = program::output(&mut doctor);

        assert_eq!(status(&output, "clock"), expected, "{ahead}");
    }
}
