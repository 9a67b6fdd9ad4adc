//! `delivery doctor`: checks what a platform needs, each with what is wrong and the fix.

mod host;
mod network;

use std::{fmt::Write as _, path::PathBuf};

use clap::Args;
use core_service::doctor::{Check, Status};
use delivery::Settings;
use process::version::version;
use serde::Serialize;
use url::Url;

use crate::cli::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  delivery doctor                               the all-in-one in ./delivery-data
  delivery doctor --data-dir /var/lib/delivery --public-url https://delivery.example
  delivery doctor --json --master-key-file /etc/delivery/master.key --database-url-file \
/etc/delivery/database-url
                                                a core, with the variables that it has

Exit status: 0 if nothing failed, with warnings or without; 1 if a check failed; 2 invalid usage.";

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    settings: Settings,

    /// File of the master keys of a core: checks that core instead of an all-in-one. Default: that of
    /// the all-in-one, in its data directory. Example: `/etc/delivery/master.key`
    #[arg(long, env = "DELIVERY_MASTER_KEY_FILE", value_name = "FILE")]
    master_key_file: Option<PathBuf>,

    /// Address database of the gazetteer. Default: `addresses.sqlite` in the data directory, or for a
    /// core in the working directory. Example: `/var/lib/delivery/addresses.sqlite`
    #[arg(long, env = "DELIVERY_GAZETTEER_FILE", value_name = "FILE")]
    gazetteer_file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Report {
    /// Of this program.
    version: &'static str,
    failures: usize,
    warnings: usize,
    checks: Vec<Check>,
}

impl Doctor {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let Self {
            mut settings,
            master_key_file,
            gazetteer_file,
            json,
        } = self;
        let is_core = master_key_file.is_some();
        // A core has no demo.
        settings.no_demo |= is_core;
        // Until the process ends: a check that timed out may still use them.
        let settings: &'static Settings = Box::leak(Box::new(settings));
        let data_dir = (!is_core).then_some(&*settings.data_dir);
        // No check uses it: any will do.
        let public_url = settings.public_url.clone();
        let public_url = public_url.map_or_else(|| Url::parse("http://127.0.0.1"), Ok)?;
        let mut core = delivery::core_config(settings, &public_url)?;
        if let Some(file) = master_key_file {
            core = core_service::Config {
                all_in_one: false,
                gazetteer_file: core_service::Config::default().gazetteer_file,
                master_key_file: file,
                ..core
            };
        }
        if let Some(file) = gazetteer_file {
            core.gazetteer_file = file;
        }
        let (mut checks, core, network) = tokio::join!(
            host::check(data_dir),
            core_service::doctor::check(Box::leak(Box::new(core))),
            network::check(settings, data_dir),
        );
        checks.extend(core);
        checks.extend(network);
        let count = |status| {
            let checks = checks.iter();
            checks
                .filter(|check| check.finding.status == status)
                .count()
        };
        let report = Report {
            version: version(),
            failures: count(Status::Failure),
            warnings: count(Status::Warning),
            checks,
        };
        if json {
            output::document(&report)?;
        } else {
            output::text(&lines(&report.checks)?)?;
        }
        let failures = report.failures;
        if failures > 0 {
            eprintln!("{failures} of {} checks failed", report.checks.len());
        }
        // A check that timed out may still block a thread, for which the runtime would wait.
        std::process::exit(i32::from(failures > 0))
    }
}

/// One line for each check, and one for each fix.
fn lines(checks: &[Check]) -> Result<String, std::fmt::Error> {
    let width = checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for Check { name, finding } in checks {
        let status = match finding.status {
            Status::Ok => "ok",
            Status::Warning => "warning",
            Status::Failure => "FAILURE",
            Status::Skipped => "skipped",
        };
        let one_line = |text: &str| text.replace('\n', " ");
        writeln!(
            text,
            "{status:7}  {name:width$}  {}",
            one_line(&finding.found)
        )?;
        if let Some(fix) = &finding.fix {
            writeln!(text, "{:7}  fix: {}", "", one_line(fix))?;
        }
    }
    Ok(text)
}
