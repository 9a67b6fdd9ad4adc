//! `delivery master-key`: the master keys in the data directory.

use std::{fmt::Write as _, path::PathBuf};

use clap::Args;
use core_service::MasterKeyCommand;
use delivery::{DEFAULT_DATA_DIR, MASTER_KEY};

use crate::cli::output;

#[derive(Args, Debug)]
pub(crate) struct MasterKey {
    /// Data directory of the all-in-one
    #[arg(
        long,
        env = "DELIVERY_DATA_DIR",
        value_name = "DIR",
        default_value = DEFAULT_DATA_DIR,
        global = true
    )]
    data_dir: PathBuf,
    #[command(subcommand)]
    command: MasterKeyCommand,
}

impl MasterKey {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let ids = self.command.run(&self.data_dir.join(MASTER_KEY))?;
        let mut lines = String::new();
        for id in ids {
            writeln!(lines, "{id}")?;
        }
        output::text(&lines)
    }
}
