//! Applies the schema to a database, for operators who do it apart from starting a core.

use clap::Parser;
use migrations::{Migrator, MigratorTrait};
use sea_orm_migration::sea_orm::{ConnectOptions, Database};

/// Bring a database to the schema of this version. A core does the same when it starts.
#[derive(Parser)]
#[command(name = "migrations")]
struct Arguments {
    /// `postgres://…` or `sqlite://<file>?mode=rwc`.
    #[arg(long, env = "DELIVERY_DATABASE_URL", hide_env_values = true)]
    database_url: String,

    /// Only say what would be applied.
    #[arg(long)]
    dry_run: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();

    let mut options = ConnectOptions::new(arguments.database_url);
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
