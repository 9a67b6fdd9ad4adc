//! Migrates a database, for operators who do not want a core to do it when it starts.

use std::{path::PathBuf, process::ExitCode};

use clap::Parser;
use migrations::{DatabaseServerVerification, Unusable};
use process::{command_line, logs, secret_file, version::version};
use sea_orm::{
    ConnectOptions, ConnectionTrait as _, Database, DatabaseConnection, DatabaseTransaction,
    TransactionTrait as _,
};

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
    match run(command_line::parse_without_secrets_in(&[
        command_line::DATABASE_URL,
    ]))
    .await
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("migrations: {}", logs::error_message(&error));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let url = match &arguments.database_url_file {
        Some(file) => secret_file::read(file)?.trim().to_owned(),
        None => arguments.database_url.unwrap_or_default(),
    };
    arguments.database_server_verification.check(&url)?;
    migrations::create_sqlite_file(&url);
    let mut options = ConnectOptions::new(&url);
    options.sqlx_logging(false);
    let connected = Database::connect(options).await;
    let database = connected.map_err(|error| {
        migrations::explain_connect_error(&url, &error)
            .map_or_else(|| error.into(), anyhow::Error::msg)
    })?;
    if arguments.dry_run {
        let pending = migrations::pending(&begin(&database, &url).await?).await?;
        for migration in &pending {
            eprintln!("{migration}");
        }
        eprintln!("{} to apply", pending.len());
        return Ok(());
    }
    let mut applied = 0;
    loop {
        let transaction = begin(&database, &url).await?;
        let Some(migration) = migrations::apply_next(&transaction).await? else {
            break;
        };
        transaction.commit().await.map_err(Unusable::from)?;
        eprintln!("{migration}");
        applied += 1;
    }
    eprintln!("{applied} applied");
    Ok(())
}

async fn begin(database: &DatabaseConnection, url: &str) -> Result<DatabaseTransaction, Unusable> {
    let transaction = database.begin().await?;
    if migrations::without_prepared_statements(url) {
        // The driver names a statement even if it does not keep it. The session may have one of that
        // name, by another client or an earlier transaction.
        transaction.execute_unprepared("DEALLOCATE ALL").await?;
    }
    Ok(transaction)
}
