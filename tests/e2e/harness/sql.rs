//! Direct SQL on the platform's database, for what no API shows or changes.

use std::process::Command;

use super::{Platform, postgres_programs};

/// Runs SQL in a PostgreSQL database, in one transaction, and returns the rows: one a line, the
/// columns separated by `|`.
pub(crate) async fn run_sql(url: &str, sql: &str) -> String {
    let programs = postgres_programs::find().expect("the database's programs are installed");
    let mut psql = Command::new(programs.join("psql"));
    // Through PgBouncer, it has a parameter of the platform's driver.
    let url = url.trim_end_matches("&statement-cache-capacity=0");
    psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
        .args(["--set=ON_ERROR_STOP=1", "--single-transaction"])
        // Only the platform's statements are recorded.
        .args(["--command", "SET LOCAL pg_stat_statements.track = 'none'"])
        .args(["--dbname", url, "--command", sql]);

    // The platform needs this runtime.
    let output = tokio::task::spawn_blocking(move || psql.output().unwrap())
        .await
        .unwrap();

    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "psql: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Like [`stored_bytes`], as text.
pub(crate) async fn stored_text(platform: &Platform) -> String {
    String::from_utf8_lossy(&stored_bytes(platform).await).into_owned()
}

/// Everything in a platform's database: the bytes of `SQLite`'s files, or the rows of `PostgreSQL`'s
/// tables, with bytes in hexadecimal.
pub(crate) async fn stored_bytes(platform: &Platform) -> Vec<u8> {
    let mut stored = Vec::new();
    let Some(url) = &platform.database.url else {
        for entry in std::fs::read_dir(platform.directory.path()).unwrap() {
            let entry = entry.unwrap();
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with("delivery.sqlite")
            {
                stored.extend(std::fs::read(entry.path()).unwrap());
            }
        }
        return stored;
    };
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
    for table in run_sql(url, tables).await.lines() {
        stored.extend(
            run_sql(url, &format!("SELECT t::text FROM {table} t"))
                .await
                .bytes(),
        );
    }
    stored
}
