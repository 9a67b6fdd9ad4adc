//! `delivery addresses`: what texts are found among.

use std::{
    fmt::Write as _,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use proto::{
    FoundAddress, ImportAddressesRequest, ImportAddressesResponse, SearchAddressesRequest,
    SearchAddressesResponse, addresses_client::AddressesClient,
};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::operator::{access::Access, id, refusal::refused, reply};

#[derive(Args, Debug)]
pub(crate) struct Addresses {
    #[command(flatten)]
    access: Access,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Replace all addresses of the core that is called by those of files
    ///
    /// Reads the French address base (BAN, CSV) and `OpenAddresses` (CSV, or lines of
    /// `GeoJSON`), plain or gzip. The addresses before stay in force until the last line is read;
    /// an import that breaks off is begun again. Each core has a file of its own.
    Import {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Where `OpenAddresses`' addresses are, ISO 3166-1 alpha-2; the platform's country if
        /// not given
        #[arg(long, value_name = "CODE")]
        country: Option<String>,
    },
    /// Look an address up as a delivery's would be, and say how it was understood
    Search {
        text: String,
        /// The store whose area decides between towns
        #[arg(long, value_name = "ID", value_parser = id::store)]
        store: Option<String>,
        /// The only country to look in, ISO 3166-1 alpha-2
        #[arg(long, value_name = "CODE")]
        country: Option<String>,
    },
}

/// Bytes of a piece.
const PIECE: usize = 256 * 1024;
/// Pieces read before they are sent.
const AHEAD: usize = 2;

impl Addresses {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let json = self.access.json;
        match self.command {
            Command::Import { files, country } => {
                let files = open(files)?;
                let core = self.access.open("admin").await?;
                let (pieces, waiting) = mpsc::channel(AHEAD);
                let reading =
                    tokio::task::spawn_blocking(move || send(files, country.as_ref(), &pieces));
                let request = core.request(ReceiverStream::new(waiting));
                let imported = AddressesClient::new(core.channel.clone())
                    .import_addresses(request)
                    .await;
                // What can't be read here is the cause of what core says.
                reading.await.context("reading the files panicked")??;
                let imported = imported.map_err(|status| refused(&status))?;
                tell_imported(json, imported.into_inner())
            }
            Command::Search {
                text,
                store,
                country,
            } => {
                let core = self.access.open("admin").await?;
                let request = core.request(SearchAddressesRequest {
                    text,
                    store,
                    country_code: country,
                });
                let searched = AddressesClient::new(core.channel.clone())
                    .search_addresses(request)
                    .await;
                let searched = searched.map_err(|status| refused(&status))?;
                tell_searched(json, searched.into_inner())
            }
        }
    }
}

/// All files, so that one that is not there is said before anything is done.
fn open(paths: Vec<PathBuf>) -> anyhow::Result<Vec<(PathBuf, File)>> {
    let open = |path: PathBuf| {
        let file = File::open(&path).with_context(|| cannot_read(&path))?;
        Ok((path, file))
    };
    paths.into_iter().map(open).collect()
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// Sends the files piece by piece, and shows how far it is where there is a terminal.
fn send(
    files: Vec<(PathBuf, File)>,
    country: Option<&String>,
    pieces: &mpsc::Sender<ImportAddressesRequest>,
) -> anyhow::Result<()> {
    let bytes = files
        .iter()
        .map(|(_, file)| file.metadata().map_or(0, |file| file.len()))
        .sum();
    let bar = ProgressBar::new(bytes).with_style(ProgressStyle::with_template(
        "{bar:40} {bytes}/{total_bytes}, {eta} left",
    )?);
    for (path, mut file) in files {
        let mut piece = ImportAddressesRequest {
            file_name: Some(path.display().to_string()),
            country_code: country.cloned(),
            ..ImportAddressesRequest::default()
        };
        loop {
            let mut content = Vec::with_capacity(PIECE);
            let length = (&mut file)
                .take(PIECE as u64)
                .read_to_end(&mut content)
                .with_context(|| cannot_read(&path))?;
            piece.content = content;
            if pieces.blocking_send(std::mem::take(&mut piece)).is_err() {
                // Core has said why it wants no more.
                return Ok(());
            }
            if length == 0 {
                break;
            }
            bar.inc(length as u64);
        }
    }
    bar.finish_and_clear();
    let last = ImportAddressesRequest {
        is_last: true,
        ..ImportAddressesRequest::default()
    };
    let _ = pieces.blocking_send(last);
    Ok(())
}

fn tell_imported(json: bool, imported: ImportAddressesResponse) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Imported {
        taken: u64,
        skipped: Vec<Skipped>,
    }
    #[derive(Serialize)]
    struct Skipped {
        reason: String,
        count: u64,
        /// `<file>:<line>`
        first: String,
    }
    let imported = Imported {
        taken: imported.taken,
        skipped: imported
            .skipped
            .into_iter()
            .map(|skipped| Skipped {
                reason: skipped.reason,
                count: skipped.count,
                first: format!("{}:{}", skipped.first_file, skipped.first_line),
            })
            .collect(),
    };
    if json {
        return reply::document(&imported);
    }
    let mut text = format!("{} addresses\n", imported.taken);
    for Skipped {
        reason,
        count,
        first,
    } in imported.skipped
    {
        writeln!(text, "{count} lines skipped: {reason} (first {first})")?;
    }
    reply::text(&text)
}

#[derive(Serialize)]
struct Searched {
    found: Option<Found>,
    missing: Option<String>,
    candidates: Vec<Found>,
}

#[derive(Serialize)]
struct Found {
    address: String,
    postal_code: Option<String>,
    locality: Option<String>,
    country: Option<String>,
    /// Latitude, longitude.
    lat_lng: Option<[f64; 2]>,
    precision: String,
    confidence: f64,
    reasons: Vec<String>,
}

impl From<FoundAddress> for Found {
    fn from(found: FoundAddress) -> Self {
        Self {
            address: found.formatted_address,
            postal_code: found.postal_code,
            locality: found.address_locality,
            country: found.address_country,
            lat_lng: found.lat_lng.map(|point| [point.latitude, point.longitude]),
            precision: found.precision,
            confidence: (found.confidence * 1000.0).round() / 1000.0,
            reasons: found.reasons,
        }
    }
}

/// Fails, with what was understood, if a delivery's address would be refused.
fn tell_searched(json: bool, searched: SearchAddressesResponse) -> anyhow::Result<()> {
    let searched = Searched {
        found: searched.found.map(Found::from),
        missing: Some(searched.missing).filter(|missing| !missing.is_empty()),
        candidates: searched.candidates.into_iter().map(Found::from).collect(),
    };
    if json {
        reply::document(&searched)?;
    } else {
        for found in searched.found.iter().chain(&searched.candidates) {
            reply::text(&told(found)?)?;
        }
    }
    match searched.missing {
        Some(missing) => anyhow::bail!(missing),
        None => Ok(()),
    }
}

fn told(found: &Found) -> anyhow::Result<String> {
    let [latitude, longitude] = found.lat_lng.unwrap_or_default();
    let mut text = format!(
        "{}\n  {latitude},{longitude}  {}  confidence {:.2}\n",
        found.address, found.precision, found.confidence
    );
    for reason in &found.reasons {
        writeln!(text, "  {reason}")?;
    }
    Ok(text)
}
