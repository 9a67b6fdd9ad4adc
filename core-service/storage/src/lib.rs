//! sea-orm lives here and nowhere else: connecting, the one seam for writes, and a file per
//! aggregate, each lookup with its owner as a parameter.

pub mod api_clients;
pub mod deliveries;
pub mod delivery_pages;
mod entity;
pub mod events;
pub mod geocodes;
pub mod idempotency_keys;
pub mod notifications;
pub mod pages;
pub mod price_lists;
pub mod retail_prices;
pub mod signing_keys;
pub mod slot_bookings;
pub mod stores;
pub mod time_slots;
pub mod webhook_notifications;
pub mod webhook_secrets;
pub mod webhooks;
pub mod zones;

mod connect;
mod error;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
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
pub use sea_orm::{ConnectionTrait, DatabaseTransaction};

use self::shared_commit::SharedCommit;
pub use self::{
    error::{Error, WriteError},
    pulse::Pulse,
    reader::Reader,
};

/// The database: reads go to a pool, writes through [`Storage::write`].
#[derive(Debug)]
pub struct Storage {
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
    pub async fn connect(url: &str) -> Result<Self, Error> {
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
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// By which it can be told whether the database answers.
    pub fn pulse(&self) -> Pulse {
        self.reader.pulse()
    }

    /// Whether it is a database for one process.
    pub fn has_one_process(&self) -> bool {
        matches!(self.writer, Writer::Shared(_))
    }

    /// Does work in a transaction, and answers when it is on disk. If the work fails, nothing of
    /// it remains; if it is late, or the database is lost on the way, that is not known.
    ///
    /// The work may run more than once: on `PostgreSQL` when it lost against another
    /// transaction, on `SQLite` when a neighbour in a shared commit broke it. So it awaits
    /// nothing but SQL and takes what must not differ (ids, now) from outside.
    pub async fn write<T, E, W>(&self, work: W) -> Result<T, E>
    where
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>>
            + Send
            + Sync
            + 'static,
        T: Send + 'static,
        E: WriteError,
    {
        match &self.writer {
            Writer::Shared(shared_commit) => shared_commit.write(work).await,
            Writer::Own(connection) => {
                // By itself: a caller that goes away does not break off a transaction.
                tokio::spawn(write_alone(connection.clone(), work))
                    .await
                    .unwrap_or_else(|error| Err(Error::Panicked(error.to_string()).into()))
            }
        }
    }

    /// Waits for the writes under way and closes.
    pub async fn close(self) -> Result<(), Error> {
        match self.writer {
            Writer::Shared(shared_commit) => shared_commit.close().await?,
            Writer::Own(connection) => connection.close().await?,
        }
        self.reader.close().await.map_err(Error::from)
    }
}

/// Tries until it is done or the time is over.
async fn write_alone<T, E, W>(connection: DatabaseConnection, work: W) -> Result<T, E>
where
    W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>> + Sync,
    E: WriteError,
{
    let done = async {
        let mut tries = 1;
        loop {
            match attempt(&connection, &work).await {
                Err(error) if matches!(error.as_storage(), Some(Error::LostRace(_))) => {
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

async fn attempt<T, E, W>(connection: &DatabaseConnection, work: &W) -> Result<T, E>
where
    W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>> + Sync,
    E: WriteError,
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
    Duration::from_micros(process::random::below(most))
}
