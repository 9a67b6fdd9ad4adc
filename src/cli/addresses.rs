//! `delivery addresses`: the gazetteer for geocoding.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use proto::{
    FoundAddress, ImportAddressesRequest, ImportAddressesResponse, SearchAddressesRequest,
    SearchAddressesResponse, SkippedLines, addresses_client::AddressesClient, iri::Collection,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::cli::{
    access::CoreCommand,
    errors::call_error,
    id,
    location::located,
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
                let response = AddressesClient::new(core.upload_channel)
                    .import_addresses(ReceiverStream::new(receiver))
                    .await;
                // An unreadable file also makes core's call fail: report the file's error first.
                upload.await.context("reading the files panicked")??;
                let imported = response.map_err(|status| call_error(&status))?;
                print_import(json, imported.get_ref())
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

fn print_import(json: bool, imported: &ImportAddressesResponse) -> anyhow::Result<()> {
    let skipped = |lines: &SkippedLines| {
        View::default()
            .named("reason", "skipped lines", &*lines.reason)
            .field("count", lines.count)
            .field(
                "first",
                format!("{}:{}", lines.first_file, lines.first_line),
            )
    };
    if imported.unused {
        eprintln!(
            "nothing will use these addresses: start the core with --geocoder gazetteer, alone or with others"
        );
    }
    let view = View::default()
        .list("skipped", imported.skipped.iter().map(skipped).collect())
        .field("imported", imported.imported);
    output::one(json, view)
}

/// Prints the result. Fails if a delivery with this address would be rejected.
fn print_search(json: bool, searched: SearchAddressesResponse) -> anyhow::Result<()> {
    let not_found_reason = non_empty(searched.not_found_reason);
    let found = searched.found.as_ref().map(view);
    let candidates = searched.candidates.iter().map(view);
    if json {
        let searched = View::default()
            .json("found", found)
            .json("not_found_reason", not_found_reason.clone())
            .json("candidates", candidates.collect::<Vec<_>>());
        output::one(true, searched)?;
    } else {
        output::many(false, found.into_iter().chain(candidates))?;
    }
    match not_found_reason {
        Some(reason) => anyhow::bail!(reason),
        None => Ok(()),
    }
}

/// `lat_lng` is latitude and longitude.
fn view(found: &FoundAddress) -> View {
    let point = found.lat_lng;
    View::default()
        .field("address", &*found.formatted_address)
        .json("postal_code", found.postal_code.clone())
        .json("locality", found.address_locality.clone())
        .json("country", found.address_country.clone())
        .json("lat_lng", point.map(|at| [at.latitude, at.longitude]))
        .text("location", point.map(located).unwrap_or_default())
        .field("precision", &*found.precision)
        .field("confidence", (found.confidence * 1000.0).round() / 1000.0)
        .json("reasons", &*found.reasons)
        .text("reasons", found.reasons.join("; "))
}
