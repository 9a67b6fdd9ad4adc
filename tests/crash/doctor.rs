//! `delivery doctor` beside a PostgreSQL whose clock differs.

use std::process::Output;

use serde_json::Value;

use crate::{
    clock,
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
