//! Migrates a database, for operators who do not want a core to do it when it starts.

use std::process::ExitCode;

use clap::Parser;
use process::{command_line, logs, version::version};
use storage::{DatabaseConfig, migrate_database};

#[global_allocator]
static ALLOCATOR: process::Allocator = process::Allocator;

/// Migrate a database to the schema of this version. A core does the same when it starts.
#[derive(Parser)]
#[command(name = "migrations", version = version())]
struct Arguments {
    #[command(flatten)]
    database: DatabaseConfig,

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
    let database = arguments.database;
    let url = database.url()?.unwrap_or_default();
    database.database_server_verification.check(&url)?;
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
