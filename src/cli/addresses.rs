//! `delivery addresses`: the gazetteer for geocoding.

use std::{
    fmt::Write as _,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use proto::{
    FoundAddress, ImportAddressesRequest, ImportAddressesResponse, LatLng, SearchAddressesRequest,
    SearchAddressesResponse, SkippedLines, addresses_client::AddressesClient, iri::Collection,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::cli::{
    access::CoreCommand,
    errors::call_error,
    id,
    output::{self, View, non_empty},
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replace all addresses of the called core
    ///
    /// Reads the French address base (BAN, CSV) and `OpenAddresses` (CSV or newline-delimited
    /// `GeoJSON`), plain or gzip. The new addresses take effect once the import is complete; start
    /// an interrupted import again. Each core has its own addresses, unless cores share a gazetteer
    /// file.
    Import {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Country of the `OpenAddresses` data, ISO 3166-1 alpha-2; by default the platform's
        #[arg(long, value_name = "CODE")]
        country: Option<String>,
    },
    /// Geocode an address as for a delivery, and explain the result
    Search {
        text: String,
        /// Prefer results near this store
        #[arg(long, value_name = "ID", value_parser = id::parser(Collection::Stores))]
        store: Option<String>,
        /// Search only this country, ISO 3166-1 alpha-2
        #[arg(long, value_name = "CODE")]
        country: Option<String>,
    },
}

/// Size of an upload chunk, in bytes.
const CHUNK_SIZE: usize = 256 * 1024;
/// Chunks to read ahead of the upload.
const READ_AHEAD: usize = 2;

impl CoreCommand<Command> {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let json = self.access.json;
        match self.command {
            Command::Import { files, country } => {
                let files = open(files)?;
                let core = self.access.connect("admin").await?;
                let (chunks, receiver) = mpsc::channel(READ_AHEAD);
                let upload =
                    tokio::task::spawn_blocking(move || upload(files, country.as_ref(), &chunks));
                let imported = AddressesClient::new(core.upload_channel)
                    .import_addresses(ReceiverStream::new(receiver))
                    .await;
                // An unreadable file also makes core's call fail: report the file's error first.
                upload.await.context("reading the files panicked")??;
                let imported = imported.map_err(|status| call_error(&status))?;
                print_import(json, imported.into_inner())
            }
            Command::Search {
                text,
                store,
                country,
            } => {
                let core = self.access.connect("admin").await?;
                let request = SearchAddressesRequest {
                    text,
                    store,
                    country_code: country,
                };
                print_search(json, core.call(request).await?)
            }
        }
    }
}

/// Opens all files, to report a missing one before the import starts.
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

/// Sends the files in chunks, with a progress bar on terminals.
fn upload(
    files: Vec<(PathBuf, File)>,
    country: Option<&String>,
    chunks: &mpsc::Sender<ImportAddressesRequest>,
) -> anyhow::Result<()> {
    let bytes = files
        .iter()
        .map(|(_, file)| file.metadata().map_or(0, |file| file.len()))
        .sum();
    let bar = ProgressBar::new(bytes).with_style(ProgressStyle::with_template(
        "{bar:40} {bytes}/{total_bytes}, {eta} left",
    )?);
    for (path, mut file) in files {
        let mut chunk = ImportAddressesRequest {
            file_name: Some(path.display().to_string()),
            country_code: country.cloned(),
            ..ImportAddressesRequest::default()
        };
        loop {
            let mut content = Vec::with_capacity(CHUNK_SIZE);
            let length = (&mut file)
                .take(CHUNK_SIZE as u64)
                .read_to_end(&mut content)
                .with_context(|| cannot_read(&path))?;
            chunk.content = content;
            if chunks.blocking_send(std::mem::take(&mut chunk)).is_err() {
                // Core has ended the import with an error.
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
    let _ = chunks.blocking_send(last);
    Ok(())
}

fn print_import(json: bool, imported: ImportAddressesResponse) -> anyhow::Result<()> {
    let ImportAddressesResponse { imported, skipped } = imported;
    let first = |lines: &SkippedLines| format!("{}:{}", lines.first_file, lines.first_line);
    if json {
        let skipped = skipped.iter().map(
            |lines| json!({ "reason": lines.reason, "count": lines.count, "first": first(lines) }),
        );
        let imported = View::default()
            .json("imported", imported)
            .json("skipped", skipped.collect::<Vec<_>>());
        return output::document(&imported);
    }
    let mut text = format!("{imported} addresses imported\n");
    for lines in &skipped {
        let (count, reason, first) = (lines.count, &lines.reason, first(lines));
        writeln!(text, "{count} lines skipped: {reason} (first {first})")?;
    }
    output::text(&text)
}

/// Prints the result. Fails if a delivery with this address would be rejected.
fn print_search(json: bool, searched: SearchAddressesResponse) -> anyhow::Result<()> {
    let SearchAddressesResponse {
        found,
        not_found_reason,
        candidates,
    } = searched;
    let not_found_reason = non_empty(not_found_reason);
    if json {
        let candidates = candidates.iter().map(to_json);
        let searched = View::default()
            .json("found", found.as_ref().map(to_json))
            .json("not_found_reason", not_found_reason.clone())
            .json("candidates", candidates.collect::<Vec<_>>());
        output::document(&searched)?;
    } else {
        for found in found.iter().chain(&candidates) {
            output::text(&to_text(found)?)?;
        }
    }
    match not_found_reason {
        Some(reason) => anyhow::bail!(reason),
        None => Ok(()),
    }
}

/// `lat_lng` is latitude and longitude.
fn to_json(found: &FoundAddress) -> Value {
    json!({
        "address": found.formatted_address,
        "postal_code": found.postal_code,
        "locality": found.address_locality,
        "country": found.address_country,
        "lat_lng": found.lat_lng.map(|point| [point.latitude, point.longitude]),
        "precision": found.precision,
        "confidence": (found.confidence * 1000.0).round() / 1000.0,
        "reasons": found.reasons,
    })
}

fn to_text(found: &FoundAddress) -> anyhow::Result<String> {
    let LatLng {
        latitude,
        longitude,
    } = found.lat_lng.unwrap_or_default();
    let mut text = format!(
        "{}\n  {latitude},{longitude}  {}  confidence {:.2}\n",
        found.formatted_address, found.precision, found.confidence
    );
    for reason in &found.reasons {
        writeln!(text, "  {reason}")?;
    }
    Ok(text)
}
