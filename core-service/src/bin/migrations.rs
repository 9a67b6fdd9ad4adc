//! Migrates a database, for operators who do not want a core to do it when it starts.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use process::{command_line, logs, secret_file, version::version};
use storage::{DatabaseServerVerification, migrate_database};

#[global_allocator]
static ALLOCATOR: process::Allocator = process::Allocator;

/// Migrate a database to the schema of this version. A core does the same when it starts.
#[derive(Parser)]
#[command(name = "migrations", version = version())]
struct Arguments {
    /// Database URL: `postgres://…` or `sqlite://FILE?mode=rwc`. Other users can see the flags of a
    /// process, so set a password by `DELIVERY_DATABASE_URL`, `PGPASSWORD`, the file named by
    /// `PGPASSFILE`, or `--database-url-file`. Default: none, it or the file is required. Example:
    /// `postgres://delivery@db.internal/delivery?sslmode=verify-full`
    #[arg(
        long,
        env = "DELIVERY_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        required_unless_present = "database_url_file",
        conflicts_with = "database_url_file"
    )]
    database_url: Option<String>,

    /// File with the database URL, readable only by its owner. Default: none. Example:
    /// `/etc/delivery/database-url`
    #[arg(long, env = "DELIVERY_DATABASE_URL_FILE", value_name = "FILE")]
    database_url_file: Option<PathBuf>,

    #[command(flatten)]
    database_server_verification: DatabaseServerVerification,

    /// List the pending migrations without applying them.
    #[arg(long)]
    dry_run: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = command_line::parse_without_secrets_in(&[command_line::DATABASE_URL]);
    logs::exit_code("migrations: ", run(arguments).await)
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let url = match &arguments.database_url_file {
        Some(file) => secret_file::read(file)?.trim().to_owned(),
        None => arguments.database_url.unwrap_or_default(),
    };
    arguments.database_server_verification.check(&url)?;
    let mut count = 0;
    let mut report = |migration| {
        eprintln!("{migration}");
        count += 1;
    };
    migrate_database(&url, arguments.dry_run, &mut report).await?;
    let done = if arguments.dry_run {
        "to apply"
    } else {
        "applied"
    };
    eprintln!("{count} {done}");
    Ok(())
}
