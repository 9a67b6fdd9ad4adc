//! Definitions: files that operators write and apply.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use crate::operator::{id, reply};

#[derive(Args, Debug)]
pub(crate) struct Apply {
    /// The definition, TOML
    pub(crate) file: PathBuf,
    /// The store it is for
    #[arg(long, value_name = "ID", value_parser = id::store)]
    pub(crate) store: String,
}

#[derive(Args, Debug)]
pub(crate) struct Check {
    /// The definition, TOML
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Whose it is
    #[arg(long, value_name = "ID", value_parser = id::store)]
    pub(crate) store: String,
}

/// The text of a definition.
pub(crate) fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Prints that a definition may be applied, and what is likely not meant in it.
pub(crate) fn sound(json: bool, file: &Path, warnings: &[String]) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Sound<'a> {
        warnings: &'a [String],
    }
    if json {
        return reply::document(&Sound { warnings });
    }
    warn(file, warnings);
    reply::text(&format!("{} is sound", file.display()))
}

/// Says on stderr what is likely not meant.
pub(crate) fn warn(file: &Path, warnings: &[String]) {
    for warning in warnings {
        eprintln!("{}: warning: {warning}", file.display());
    }
}
