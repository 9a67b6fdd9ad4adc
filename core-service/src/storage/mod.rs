//! sea-orm lives here and nowhere else: connecting, the one seam for writes, and a file per
//! aggregate, each lookup with its owner as a parameter.

pub(crate) mod api_clients;
pub(crate) mod deliveries;
pub(crate) mod delivery_pages;
mod entity;
pub(crate) mod events;
pub(crate) mod geocodes;
pub(crate) mod idempotency_keys;
pub(crate) mod notifications;
pub(crate) mod pages;
pub(crate) mod price_lists;
pub(crate) mod retail_prices;
pub(crate) mod signing_keys;
pub(crate) mod slot_bookings;
pub(crate) mod stores;
pub(crate) mod time_slots;
pub(crate) mod webhook_notifications;
pub(crate) mod webhook_secrets;
pub(crate) mod webhooks;
pub(crate) mod zones;

mod connect;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
mod lease_clock;
mod padding;
mod pulse;
mod reader;
mod refusal;
mod schema;
mod shared_commit;

use std::time::Duration;

use futures_util::future::BoxFuture;
use sea_orm::DatabaseConnection;
use sea_orm::TransactionTrait;
pub(crate) use sea_orm::{ConnectionTrait, DatabaseTransaction};

use self::shared_commit::SharedCommit;
pub(crate) use self::{error::Error, pulse::Pulse, reader::Reader};
use crate::error::Error as CoreError;

/// The database: reads go to a pool, writes through [`Storage::write`].
#[derive(Debug)]
pub(crate) struct Storage {
    reader: Reader,
    writer: Writer,
}

#[derive(Debug)]
enum Writer {
    /// `SQLite` has one writer: what arrives together is committed together.
    Shared(SharedCommit),
    /// `PostgreSQL`: a transaction each, repeated when it lost against another.
    Own(DatabaseConnection),
}

/// How long a write may take, far beyond what any takes while the database answers: who waits
/// for it is told so while it still listens. Less than the gateway's 30 s.
const WRITE: Duration = Duration::from_secs(10);

impl Storage {
    /// Opens the database and brings its schema to this version.
    pub(crate) async fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, WRITE).await
    }

    /// As [`Storage::connect`]; on `SQLite` a write waits for so long.
    async fn connect_with(url: &str, patience: Duration) -> Result<Self, Error> {
        let (reader, writer) = connect::open(url)
            .await
            .map_err(|error| refusal::of_database(url, error))?;
        schema::migrate(&writer).await?;
        let writer = match writer.get_database_backend() {
            sea_orm::DbBackend::Sqlite => {
                Writer::Shared(SharedCommit::start(url.to_owned(), writer, patience))
            }
            _ => Writer::Own(writer),
        };
        Ok(Self {
            reader: Reader::new(reader),
            writer,
        })
    }

    /// Where reads go that need no transaction. It sees every write that was answered.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// By which it can be told whether the database answers.
    pub(crate) fn pulse(&self) -> Pulse {
        self.reader.pulse()
    }

    /// Whether it is a database for one process.
    pub(crate) fn has_one_process(&self) -> bool {
        matches!(self.writer, Writer::Shared(_))
    }

    /// Does work in a transaction, and answers when it is on disk. If the work fails, nothing of
    /// it remains; if it is late, or the database is lost on the way, that is not known.
    ///
    /// The work may run more than once: on `PostgreSQL` when it lost against another
    /// transaction, on `SQLite` when a neighbour in a shared commit broke it. So it awaits
    /// nothing but SQL and takes what must not differ (ids, now) from outside.
    pub(crate) async fn write<T, W>(&self, work: W) -> Result<T, CoreError>
    where
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, CoreError>>
            + Send
            + Sync
            + 'static,
        T: Send + 'static,
    {
        match &self.writer {
            Writer::Shared(shared_commit) => shared_commit.write(work).await,
            Writer::Own(connection) => {
                // By itself: a caller that goes away does not break off a transaction.
                tokio::spawn(write_alone(connection.clone(), work))
                    .await
                    .unwrap_or_else(|error| Err(CoreError::Bug(error.to_string())))
            }
        }
    }

    /// Waits for the writes under way and closes.
    pub(crate) async fn close(self) -> Result<(), Error> {
        match self.writer {
            Writer::Shared(shared_commit) => shared_commit.close().await?,
            Writer::Own(connection) => connection.close().await?,
        }
        self.reader.close().await.map_err(Error::from)
    }
}

/// Tries until it is done or the time is over.
async fn write_alone<T, W>(connection: DatabaseConnection, work: W) -> Result<T, CoreError>
where
    W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, CoreError>> + Sync,
{
    let done = async {
        let mut tries = 1;
        loop {
            match attempt(&connection, &work).await {
                Err(CoreError::Storage(Error::LostRace(_))) => {
                    tokio::time::sleep(jitter(tries)).await;
                    tries += 1;
                }
                result => return result,
            }
        }
    };
    tokio::time::timeout(WRITE, done)
        .await
        .unwrap_or_else(|_| Err(Error::Late.into()))
}

async fn attempt<T, W>(connection: &DatabaseConnection, work: &W) -> Result<T, CoreError>
where
    W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, CoreError>> + Sync,
{
    let transaction = connection.begin().await.map_err(Error::from)?;
    match work(&transaction).await {
        Ok(value) => {
            transaction.commit().await.map_err(Error::from)?;
            Ok(value)
        }
        Err(error) => {
            // The transaction is void either way; what the caller should hear is the first error.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

/// Up to 2, 4, 8 … 128 ms: those who collided should not meet again.
fn jitter(tries: u32) -> Duration {
    let most = 1000_u64 << tries.min(7);
    Duration::from_micros(crate::random::below(most))
}
