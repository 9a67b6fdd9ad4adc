//! Imports address files from a gRPC stream. A channel passes the bytes to a blocking thread,
//! which parses them while they arrive.

use std::{
    io::{self, Read},
    path::Path,
    time::Duration,
};

use bytes::{Buf, Bytes};
use domain::store::Country;
use futures_util::{Stream, TryStreamExt as _};
use geocoding::gazetteer::{Import, ImportError, ImportStats};
use tokio::{sync::mpsc, time::timeout};
use tonic::{Status, Streaming};

use crate::error::Error;

/// How long a message of the stream may take to arrive, so that an abandoned import ends.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Capacity of the channel; while it is full, the stream is not read.
const QUEUED_CHUNKS: usize = 8;

/// A message to the parsing thread.
enum Chunk {
    File {
        name: String,
        country: String,
    },
    Content(Bytes),
    /// All files are complete. A stream without it was cancelled.
    End,
}

/// Imports the files of a stream.
pub(super) async fn run(
    target: &Path,
    country: String,
    mut stream: Streaming<proto::ImportAddressesRequest>,
) -> Result<ImportStats, Error> {
    let (sender, receiver) = mpsc::channel(QUEUED_CHUNKS);
    let target = target.to_owned();
    let parser = tokio::task::spawn_blocking(move || read(&target, receiver));

    forward(&mut stream, &country, sender, MESSAGE_TIMEOUT).await?;
    let result = parser
        .await
        .map_err(|error| Error::Bug(format!("an import of addresses panicked: {error}")))?;
    result.map_err(|error| import_error(&error))
}

/// Forwards the stream until it ends or the reader stops.
async fn forward(
    stream: &mut (impl Stream<Item = Result<proto::ImportAddressesRequest, Status>> + Unpin),
    country: &str,
    sender: mpsc::Sender<Chunk>,
    message_timeout: Duration,
) -> Result<(), Error> {
    loop {
        let incomplete = |reason: &str| Error::invalid("content", "INCOMPLETE", reason.to_owned());
        let message = timeout(message_timeout, stream.try_next())
            .await
            .map_err(|_| incomplete("the stream stopped: no message arrived in time"))?;
        let Some(message) = message.map_err(|_| incomplete("the stream ended early"))? else {
            // The reader reports a missing end.
            return Ok(());
        };
        if let Some(name) = message.file_name {
            let country = match message.country_code {
                Some(code) => code.parse::<Country>().map_err(|error| {
                    Error::invalid("country_code", "UNKNOWN_COUNTRY", error.to_string())
                })?,
                None => country.parse().map_err(|_| {
                    Error::Bug("the platform's country is not a country code".to_owned())
                })?,
            };
            let country = country.as_str().to_owned();
            if sender.send(Chunk::File { name, country }).await.is_err() {
                return Ok(());
            }
        }
        if !message.content.is_empty() {
            let content = Bytes::from(message.content);
            if sender.send(Chunk::Content(content)).await.is_err() {
                return Ok(());
            }
        }
        if message.is_last {
            let _ = sender.send(Chunk::End).await;
            return Ok(());
        }
    }
}

fn read(target: &Path, receiver: mpsc::Receiver<Chunk>) -> Result<ImportStats, ImportError> {
    let mut import = Import::begin(target)?;
    let mut files = FileReader {
        receiver,
        content: Bytes::new(),
        next: None,
    };
    while let Some((name, country)) = files.next_file() {
        import.read(&name, &country, &mut files)?;
    }
    if files.is_ended() {
        return import.finish();
    }
    Err(ImportError::Incomplete)
}

/// Reads the content of the current file from the channel.
struct FileReader {
    receiver: mpsc::Receiver<Chunk>,
    content: Bytes,
    /// The first message after the content of the file.
    next: Option<Chunk>,
}

impl FileReader {
    /// Skips the rest of the current file and starts the next; none after the last.
    fn next_file(&mut self) -> Option<(String, String)> {
        self.content = Bytes::new();
        loop {
            match self.next.take().or_else(|| self.receiver.blocking_recv()) {
                Some(Chunk::File { name, country }) => return Some((name, country)),
                Some(Chunk::Content(_)) => {}
                end @ (Some(Chunk::End) | None) => {
                    self.next = end;
                    return None;
                }
            }
        }
    }

    fn is_ended(&self) -> bool {
        matches!(self.next, Some(Chunk::End))
    }
}

impl Read for &mut FileReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.content.is_empty() {
            if self.next.is_some() {
                // The end of the file was reached before.
                return Ok(0);
            }
            match self.receiver.blocking_recv() {
                Some(Chunk::Content(content)) => self.content = content,
                Some(next) => {
                    self.next = Some(next);
                    return Ok(0);
                }
                None => return Err(disconnected()),
            }
        }
        let length = buffer.len().min(self.content.len());
        self.content.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

fn disconnected() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ended early")
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

    use super::*;

    #[tokio::test]
    async fn a_stream_that_stops_ends_the_import() {
        let (sender, mut receiver) = mpsc::channel(1);
        let first = proto::ImportAddressesRequest {
            content: b"a line".to_vec(),
            ..proto::ImportAddressesRequest::default()
        };
        let mut stream = stream::iter([Ok(first)]).chain(stream::pending());

        let forwarded = forward(&mut stream, "FR", sender, Duration::from_millis(1)).await;

        let Err(Error::Invalid(violations)) = forwarded else {
            panic!("{forwarded:?}");
        };
        assert!(violations.has_violation_in("content"));
        assert!(matches!(receiver.recv().await, Some(Chunk::Content(_))));
        assert!(receiver.recv().await.is_none());
    }
}
