//! `delivery migrate`: migrates a database, for operators who do not want a core to do it when it starts.

use clap::Args;
use core_service::{DatabaseConfig, migrate_database};

#[derive(Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    database: DatabaseConfig,

    /// List the pending migrations without applying them
    #[arg(long)]
    dry_run: bool,
}

impl Migrate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = self.database.url()?.unwrap_or_default();
        self.database.database_server_verification.check(&url)?;
        let mut count = 0;
        let mut report = |migration| {
            eprintln!("{migration}");
            count += 1;
        };
        migrate_database(&url, self.dry_run, &mut report).await?;
        let done = if self.dry_run { "to apply" } else { "applied" };
        eprintln!("{count} {done}");
        Ok(())
    }
}
