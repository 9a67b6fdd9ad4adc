//! Files of addresses that come over a stream, read as they come: their bytes pass from the
//! stream to a thread that reads and writes files.

use std::{
    io::{self, Read},
    path::Path,
};

use bytes::{Buf, Bytes};
use domain::{store::Country, violation::Violations};
use geocoding::gazetteer::{Import, ImportError, Tally};
use tokio::sync::mpsc;
use tonic::Streaming;

use crate::error::Error;

/// Pieces that wait to be read: the sender waits rather than memory.
const WAITING: usize = 8;

/// What passes to the thread.
enum Piece {
    File {
        name: String,
        country: String,
    },
    Content(Bytes),
    /// All files came to their end. Without it the caller is gone.
    End,
}

/// Imports the files of a stream.
pub(super) async fn run(
    target: &Path,
    country: String,
    mut stream: Streaming<proto::ImportAddressesRequest>,
) -> Result<Tally, Error> {
    let (pieces, waiting) = mpsc::channel(WAITING);
    let target = target.to_owned();
    let reading = tokio::task::spawn_blocking(move || read(&target, waiting));

    pass_on(&mut stream, &country, pieces).await?;
    let result = reading
        .await
        .map_err(|error| Error::Bug(format!("an import of addresses panicked: {error}")))?;
    result.map_err(|error| refused(&error))
}

/// Passes the stream's pieces on, until it ends or the reader has seen enough.
async fn pass_on(
    stream: &mut Streaming<proto::ImportAddressesRequest>,
    country: &str,
    pieces: mpsc::Sender<Piece>,
) -> Result<(), Error> {
    loop {
        let broken = |_| invalid("content", "INCOMPLETE", "broke off".to_owned());
        let Some(message) = stream.message().await.map_err(broken)? else {
            // If the reader has not seen the last piece, it says so.
            return Ok(());
        };
        if let Some(name) = message.file_name {
            let country = match message.country_code {
                Some(code) => code.parse::<Country>().map_err(|error| {
                    invalid("country_code", "UNKNOWN_COUNTRY", error.to_string())
                })?,
                None => country
                    .parse()
                    .map_err(|_| Error::Bug("the platform's country is none".to_owned()))?,
            };
            let country = country.as_str().to_owned();
            if pieces.send(Piece::File { name, country }).await.is_err() {
                return Ok(());
            }
        }
        if !message.content.is_empty() {
            let content = Bytes::from(message.content);
            if pieces.send(Piece::Content(content)).await.is_err() {
                return Ok(());
            }
        }
        if message.is_last {
            let _ = pieces.send(Piece::End).await;
            return Ok(());
        }
    }
}

fn read(target: &Path, waiting: mpsc::Receiver<Piece>) -> Result<Tally, ImportError> {
    let mut import = Import::begin(target)?;
    let mut pieces = Pieces {
        waiting,
        content: Bytes::new(),
        next: None,
    };
    while let Some((name, country)) = pieces.next_file() {
        import.read(&name, &country, &mut pieces)?;
    }
    if pieces.is_ended() {
        return import.finish();
    }
    Err(ImportError::Incomplete)
}

/// A file's content as it comes.
struct Pieces {
    waiting: mpsc::Receiver<Piece>,
    content: Bytes,
    /// What came after the file's last piece.
    next: Option<Piece>,
}

impl Pieces {
    /// The next file, with what is left of the one before thrown away; none after the last.
    fn next_file(&mut self) -> Option<(String, String)> {
        self.content = Bytes::new();
        loop {
            match self.next.take().or_else(|| self.waiting.blocking_recv()) {
                Some(Piece::File { name, country }) => return Some((name, country)),
                Some(Piece::Content(_)) => {}
                end @ (Some(Piece::End) | None) => {
                    self.next = end;
                    return None;
                }
            }
        }
    }

    fn is_ended(&self) -> bool {
        matches!(self.next, Some(Piece::End))
    }
}

impl Read for &mut Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.content.is_empty() {
            match self.waiting.blocking_recv() {
                Some(Piece::Content(content)) => self.content = content,
                Some(next) => {
                    self.next = Some(next);
                    return Ok(0);
                }
                None => return Err(gone()),
            }
        }
        let length = buffer.len().min(self.content.len());
        self.content.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the files broke off")
}

fn refused(error: &ImportError) -> Error {
    match error {
        ImportError::UnderWay => Error::Conflict {
            reason: "IMPORT_UNDER_WAY",
            message: error.to_string(),
        },
        ImportError::Incomplete
        | ImportError::Read { .. }
        | ImportError::Format { .. }
        | ImportError::Empty(_) => {
            let mut description = error.to_string();
            if let ImportError::Read { source, .. } = error {
                description = format!("{description}: {source}");
            }
            invalid("content", "UNREADABLE", description)
        }
        ImportError::Write { .. } | ImportError::Index(_) | ImportError::Dictionary(_) => {
            Error::Bug(format!("{error}: {:?}", std::error::Error::source(error)))
        }
    }
}

fn invalid(field: &str, reason: &'static str, description: String) -> Error {
    let mut violations = Violations::new();
    violations.add(field, reason, description);
    Error::Invalid(violations)
}
