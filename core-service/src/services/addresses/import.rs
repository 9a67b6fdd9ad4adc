//! Imports address files from a gRPC stream, which a blocking thread receives and parses.

use std::{
    io::{self, Read},
    path::Path,
    time::Duration,
};

use bytes::{Buf, Bytes};
use domain::store::Country;
use futures_util::{Stream, TryStreamExt as _};
use geocoding::gazetteer::{Import, ImportError, ImportStats};
use tokio::{runtime::Handle, time::timeout};
use tonic::Status;

use crate::{call_limits::stream_failed, error::Error};

/// How long a message of the stream may take to arrive, so that an abandoned import ends.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Imports the files of a stream. `country` is the default of files.
pub(crate) async fn run<S>(target: &Path, country: Country, stream: S) -> Result<ImportStats, Error>
where
    S: Stream<Item = Result<proto::ImportAddressesRequest, Status>> + Unpin + Send + 'static,
{
    let files = Files::new(stream, country, MESSAGE_TIMEOUT);
    let target = target.to_owned();
    tokio::task::spawn_blocking(move || files.import(&target))
        .await
        .map_err(|error| Error::Bug(format!("an import of addresses panicked: {error}")))?
}

/// The files of a stream; reads the content of the current one.
struct Files<S> {
    stream: S,
    country: Country,
    message_timeout: Duration,
    /// Received and not read.
    content: Bytes,
    /// The name and country of the file that begins with `content`.
    next: Option<(String, Country)>,
    /// Whether all files are complete. A stream that ends before was cancelled.
    is_complete: bool,
    /// Why no message was received.
    failure: Option<Error>,
}

impl<S> Files<S>
where
    S: Stream<Item = Result<proto::ImportAddressesRequest, Status>> + Unpin,
{
    fn new(stream: S, country: Country, message_timeout: Duration) -> Self {
        Self {
            stream,
            country,
            message_timeout,
            content: Bytes::new(),
            next: None,
            is_complete: false,
            failure: None,
        }
    }

    fn import(mut self, target: &Path) -> Result<ImportStats, Error> {
        let imported = Import::begin(target).and_then(|mut import| {
            while let Some((name, country)) = self.next_file()? {
                import.read(&name, country.as_str(), &mut self)?;
            }
            import.finish()
        });
        imported.map_err(|error| self.failure.take().unwrap_or_else(|| import_error(&error)))
    }

    /// Skips the rest of the current file and starts the next; none after the last.
    fn next_file(&mut self) -> Result<Option<(String, Country)>, ImportError> {
        while self.next.is_none() {
            self.content = Bytes::new();
            if self.is_complete {
                return Ok(None);
            }
            if !self.receive() {
                return Err(ImportError::Incomplete);
            }
        }
        Ok(self.next.take())
    }

    /// Receives a message. Returns whether there was one.
    fn receive(&mut self) -> bool {
        let next = timeout(self.message_timeout, self.stream.try_next());
        let incomplete = |reason: &str| Error::invalid("content", "INCOMPLETE", reason);
        let received = match Handle::current().block_on(next) {
            Ok(Ok(Some(message))) => self.begin(message),
            Ok(Ok(None)) => return false,
            Ok(Err(status)) => Err(stream_failed(&status, "the stream ended early")),
            Err(_) => Err(incomplete("the stream stopped: no message arrived in time")),
        };
        self.failure = received.err();
        self.failure.is_none()
    }

    fn begin(&mut self, message: proto::ImportAddressesRequest) -> Result<(), Error> {
        if let Some(name) = message.file_name {
            let country = match message.country_code {
                Some(code) => code
                    .parse::<Country>()
                    .map_err(|error| Error::invalid("country_code", "UNKNOWN_COUNTRY", error))?,
                None => self.country.clone(),
            };
            self.next = Some((name, country));
        }
        self.content = message.content.into();
        self.is_complete = message.is_last;
        Ok(())
    }
}

impl<S> Read for Files<S>
where
    S: Stream<Item = Result<proto::ImportAddressesRequest, Status>> + Unpin,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.next.is_none() && self.content.is_empty() {
            if self.is_complete {
                return Ok(0);
            }
            if !self.receive() {
                let reason = "the stream ended early";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, reason));
            }
        }
        if self.next.is_some() {
            return Ok(0);
        }
        let length = buffer.len().min(self.content.len());
        self.content.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

fn import_error(error: &ImportError) -> Error {
    match error {
        ImportError::InProgress => Error::Conflict("IMPORT_IN_PROGRESS", error.to_string()),
        ImportError::Incomplete
        | ImportError::Read { .. }
        | ImportError::Format { .. }
        | ImportError::NoAddressImported(_) => {
            let mut description = error.to_string();
            if let ImportError::Read { source, .. } = error {
                description = format!("{description}: {source}");
            }
            Error::invalid("content", "UNREADABLE", description)
        }
        ImportError::Write { .. } | ImportError::Index(_) | ImportError::Dictionary(_) => {
            Error::Bug(format!("{error}: {:?}", std::error::Error::source(error)))
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};
    use tempfile::TempDir;

    use super::*;

    #[tokio::test]
    async fn a_stream_that_stops_ends_the_import() {
        let first = proto::ImportAddressesRequest {
            file_name: Some("addresses.csv".to_owned()),
            content: b"a line".to_vec(),
            ..proto::ImportAddressesRequest::default()
        };
        let stream = stream::iter([Ok(first)]).chain(stream::pending());
        let files = Files::new(stream, "FR".parse().unwrap(), Duration::from_millis(1));
        let directory = TempDir::new().unwrap();
        let target = directory.path().join("addresses.sqlite");

        let imported = tokio::task::spawn_blocking(move || files.import(&target)).await;

        let Ok(Err(Error::Invalid(violations))) = imported else {
            panic!("{imported:?}");
        };
        let reasons = violations.iter().map(|violation| &*violation.reason);
        assert_eq!(reasons.collect::<Vec<_>>(), ["INCOMPLETE"]);
        assert!(violations.has_violation_in("content"));
    }
}
