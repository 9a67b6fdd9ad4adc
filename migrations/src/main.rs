//! Applies the schema to a database, for operators who do it apart from starting a core.

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use migrations::{Migrator, MigratorTrait};
use process::{command_line, secret_file, sentence::sentence};
use sea_orm_migration::sea_orm::{ConnectOptions, Database};

/// Bring a database to the schema of this version. A core does the same when it starts.
#[derive(Parser)]
#[command(name = "migrations")]
struct Arguments {
    /// `postgres://…` or `sqlite://<file>?mode=rwc`. A password does not belong into a flag,
    /// which others can see: have it in this variable, in `PGPASSWORD`, in the file that
    /// `PGPASSFILE` names, or in `--database-url-file`.
    #[arg(
        long,
        env = "DELIVERY_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        required_unless_present = "database_url_file",
        conflicts_with = "database_url_file"
    )]
    database_url: Option<String>,

    /// File with the database's URL, readable by its owner alone.
    #[arg(long, env = "DELIVERY_DATABASE_URL_FILE", value_name = "FILE")]
    database_url_file: Option<PathBuf>,

    /// Only say what would be applied.
    #[arg(long)]
    dry_run: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut command = Arguments::command();
    let matches = command.get_matches_mut();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    command_line::refuse_secrets(&mut command, &matches, &[command_line::DATABASE_URL]);
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("migrations: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let url = match arguments.database_url_file {
        Some(file) => secret_file::read(&file)?.trim().to_owned(),
        None => arguments.database_url.unwrap_or_default(),
    };
    let mut options = ConnectOptions::new(url);
    options.sqlx_logging(false);
    let database = Database::connect(options).await?;

    let pending = Migrator::get_pending_migrations(&database).await?;
    for step in &pending {
        eprintln!("{}", step.name());
    }
    if arguments.dry_run {
        eprintln!("{} to apply", pending.len());
        return Ok(());
    }
    Migrator::up(&database, None).await?;
    eprintln!("{} applied", pending.len());
    Ok(())
}
