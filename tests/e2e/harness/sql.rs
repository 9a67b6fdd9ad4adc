//! SQL beside the platform, for what no API shows or changes.

use std::process::Command;

use super::postgres_programs;

/// Runs SQL in a PostgreSQL database, in one transaction, and returns the rows: one a line, the
/// columns separated by `|`.
pub(crate) async fn run_sql(url: &str, sql: &str) -> String {
    let programs = postgres_programs::find().expect("the database's programs are installed");
    let mut psql = Command::new(programs.join("psql"));
    psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
        .args(["--set=ON_ERROR_STOP=1", "--single-transaction"])
        .args(["--dbname", url, "--command", sql]);

    // The platform needs this runtime meanwhile.
    let output = tokio::task::spawn_blocking(move || psql.output().unwrap())
        .await
        .unwrap();

    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "psql: {errors}");
    String::from_utf8(output.stdout).unwrap()
}
