//! Definitions of price lists, time slots and zones: files that operators check and apply.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use process::logs::printable;
use proto::iri::Collection;

use crate::cli::{
    id,
    output::{self, View},
};

#[derive(Args, Debug)]
pub(crate) struct Apply {
    /// Definition file, TOML
    pub(crate) file: PathBuf,
    /// Store to apply it to
    #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
    pub(crate) store: String,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Definition file, TOML
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct StoreFlag {
    /// Store
    #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
    pub(crate) store: String,
}

pub(crate) fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Prints that a definition is valid, and its warnings.
pub(crate) fn print_valid(json: bool, file: &Path, warnings: &[String]) -> anyhow::Result<()> {
    if json {
        return output::one(true, View::default().json("warnings", warnings));
    }
    warn(file, warnings);
    output::text(&format!("{} is valid", file.display()))
}

/// Prints a definition as applied; with `--json`, its metadata too.
pub(crate) fn print_applied(json: bool, definition: &str, metadata: View) -> anyhow::Result<()> {
    if json {
        return output::one(true, metadata.json("definition", definition));
    }
    output::definition(definition)
}

/// Prints warnings to stderr.
pub(crate) fn warn(file: &Path, warnings: &[String]) {
    for warning in warnings {
        eprintln!("{}: warning: {}", file.display(), printable(warning));
    }
}
