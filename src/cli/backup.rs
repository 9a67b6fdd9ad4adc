//! `delivery backup`, `verify` and `restore`: backups of a platform over `SQLite`; and `delivery migrate`.
//! They work on the database and call no core.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use core_service::{
    Backup as Summary, BackupSource, DatabaseConfig, migrate_database,
    verification::{self, Batch, Problem},
};
use delivery::{Clock, DATABASE, DEFAULT_DATA_DIR, DataDir, MASTER_KEY};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::cli::{
    DataDirFlag,
    output::{self, View},
};

/// How many problems are printed.
const MAX_PROBLEMS: usize = 100;

#[derive(Args, Debug)]
pub(crate) struct Backup {
    /// File to write, in another directory than the database
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    all_in_one: DataDirFlag,

    /// Database file of a core over `SQLite`, if it is not in the data directory
    #[arg(long, value_name = "FILE")]
    database_file: Option<PathBuf>,

    /// Include the master key: with it, the file alone can be restored and decrypted
    #[arg(long)]
    with_master_key: bool,

    /// File of the master key, if it is not in the data directory
    #[arg(long, value_name = "FILE", requires = "with_master_key")]
    master_key_file: Option<PathBuf>,

    /// Replace an existing file
    #[arg(long)]
    force: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// Backup to verify, of a database over `SQLite`; without it, the `PostgreSQL` database is verified
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    database: DatabaseConfig,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// Backup to restore
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Data directory to create; must be empty if it exists
    #[arg(long, env = "DELIVERY_DATA_DIR", value_name = "DIR")]
    #[arg(default_value = DEFAULT_DATA_DIR)]
    data_dir: PathBuf,

    /// File of the master key, which is copied; for a backup that does not include it
    #[arg(long, value_name = "FILE")]
    master_key_file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    database: DatabaseConfig,

    /// List the pending migrations without applying them
    #[arg(long)]
    dry_run: bool,
}

impl Backup {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let in_data_dir = |name| self.all_in_one.data_dir.join(name);
        let database = self.database_file.unwrap_or_else(|| in_data_dir(DATABASE));
        let key_file = self
            .master_key_file
            .unwrap_or_else(|| in_data_dir(MASTER_KEY));
        let source = BackupSource {
            master_key_file: self.with_master_key.then_some(key_file),
            taken_at: Clock::system().now(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            database,
        };
        let backup = core_service::back_up(&source, &self.file, self.force);
        let summary = tokio::select! {
            summary = backup => summary?,
            never = show_progress(&source.database, &self.file) => never?,
        };
        print(self.json, summary)
    }
}

impl Verify {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        if let Some(file) = &self.file {
            return print(self.json, core_service::verify(file).await?);
        }
        let url = self.database.url()?.context(
            "name a backup of SQLite's file, or a PostgreSQL database by DELIVERY_DATABASE_URL, --database-url or --database-url-file",
        )?;
        self.database.database_server_verification.check(&url)?;
        ensure!(
            !url.starts_with("sqlite:"),
            "only a PostgreSQL database is verified in place: take a backup with `delivery backup`, and verify that"
        );
        verify_database(&url, self.json).await
    }
}

/// Verifies a `PostgreSQL` database, with a progress bar on a terminal. Fails if a row contradicts others.
async fn verify_database(url: &str, json: bool) -> anyhow::Result<()> {
    let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len}")?;
    let bar = ProgressBar::new(0).with_style(style);
    let (mut rows, mut problems) = (BTreeMap::new(), Vec::new());
    let mut count = 0;
    let mut report = |batch: Batch| {
        let read = rows.entry(batch.table).or_insert(0);
        *read += batch.rows;
        bar.set_message(batch.table);
        bar.set_length(batch.estimate.max(*read));
        bar.set_position(*read);
        count += batch.problems.len();
        let left = MAX_PROBLEMS.saturating_sub(problems.len());
        problems.extend(batch.problems.into_iter().take(left));
    };
    verification::verify(url, &mut report).await?;
    bar.finish_and_clear();
    let shown = rows.iter().map(|(table, rows)| format!("{table} {rows}"));
    let view = View::default()
        .list("problems", problems.into_iter().map(problem_view).collect())
        .text("rows", shown.collect::<Vec<_>>().join(", "))
        .json("rows", json!(rows));
    output::one(json, view)?;
    ensure!(count == 0, "{count} rows contradict others");
    Ok(())
}

fn problem_view(problem: Problem) -> View {
    View::default()
        .field("table", problem.table)
        .field("store", problem.store)
        .field("key", problem.key)
        .field("reason", problem.reason)
}

impl Restore {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let data_dir = DataDir::lock_empty(&self.data_dir)?;
        let (database, master_key) = (data_dir.file(DATABASE), data_dir.file(MASTER_KEY));
        let key_file = self.master_key_file.as_deref();
        let restored = core_service::restore(&self.file, key_file, &database, &master_key);
        print(self.json, restored.await?)
    }
}

impl Migrate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = self.database.url()?.context(
            "no database URL is configured: set DELIVERY_DATABASE_URL, --database-url or --database-url-file",
        )?;
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

/// Shows the growth of the file on a terminal. Does not end.
async fn show_progress(database: &Path, file: &Path) -> anyhow::Result<Summary> {
    let length = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes}")?;
    let bar = ProgressBar::new(length(database)).with_style(style);
    let partial = core_service::partial_path(file);
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        bar.set_position(length(&partial));
    }
}

fn print(json: bool, backup: Summary) -> anyhow::Result<()> {
    let included = if backup.includes_master_key {
        "included"
    } else {
        "not included"
    };
    let master_key = backup.master_key.as_deref().unwrap_or("none yet");
    let counts = backup.counts.iter();
    let rows: Vec<_> = counts
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let view = View::default()
        .field("file", backup.file.display().to_string())
        .field("bytes", backup.bytes)
        .named("taken_at", "taken at", backup.taken_at)
        .field("program", backup.program)
        .field("schema", backup.schema)
        .text("master key", format!("{master_key}, {included}"))
        .json("master_key", backup.master_key)
        .json("includes_master_key", backup.includes_master_key)
        .text("rows", rows.join(", "))
        .json("counts", json!(backup.counts));
    output::one(json, view)
}
