//! `delivery doctor`: checks what a core needs, each with what is wrong and the fix.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use core_service::{
    Config, DatabaseConfig, TlsConfig,
    doctor::{Check, Status},
};
use delivery::{GrpcTlsConfig, MASTER_KEY, database_of};
use process::version::version;

use crate::cli::{
    DataDirFlag,
    output::{self, View},
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  delivery doctor                               the all-in-one in ./delivery-data
  delivery doctor --data-dir /var/lib/delivery
  delivery doctor --json --master-key-file /etc/delivery/master.key --database-url-file \
/etc/delivery/database-url
                                                a core, with the variables that it has

Exit status: 0 if nothing failed, with warnings or without; 1 if a check failed; 2 invalid usage.";

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    all_in_one: DataDirFlag,

    #[command(flatten)]
    database: DatabaseConfig,

    #[command(flatten)]
    grpc_tls: GrpcTlsConfig,

    /// File of the master keys of a core: checks that core instead of an all-in-one. Default: that of
    /// the all-in-one, in its data directory. Example: `/etc/delivery/master.key`
    #[arg(long, env = "DELIVERY_MASTER_KEY_FILE", value_name = "FILE")]
    master_key_file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten, next_help_heading = "TLS of a core")]
    core_tls: TlsConfig,
}

impl Doctor {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let all_in_one = self.master_key_file.is_none();
        let data_dir = self.all_in_one.data_dir;
        let own_key = || data_dir.join(MASTER_KEY);
        let config = Config {
            all_in_one,
            database: database_of(self.database, &data_dir)?,
            tls: if all_in_one {
                self.grpc_tls.of_core()
            } else {
                self.core_tls
            },
            master_key_file: self.master_key_file.unwrap_or_else(own_key),
            ..Config::default()
        };
        let checks = core_service::doctor::check(&config).await;
        let count = |status| {
            let statuses = checks.iter().map(|check| check.finding.status);
            statuses.filter(|found| *found == status).count()
        };
        let (total, failures) = (checks.len(), count(Status::Failure));
        let report = View::default()
            .json("version", version())
            .json("failures", failures)
            .json("warnings", count(Status::Warning))
            .list("checks", checks.iter().map(view).collect());
        output::one(self.json, report)?;
        ensure!(failures == 0, "{failures} of {total} checks failed");
        Ok(())
    }
}

fn view(check: &Check) -> View {
    let finding = &check.finding;
    let status = match finding.status {
        Status::Ok => "ok",
        Status::Warning => "warning",
        Status::Failure => "failure",
    };
    let explained = match finding.fix {
        Some(fix) => format!("{}: {fix}", finding.found),
        None => finding.found.clone(),
    };
    View::default()
        .named("name", "check", check.name)
        .field("status", status)
        .json("found", &*finding.found)
        .json("fix", finding.fix)
        .text("found", explained)
}
