//! The entry point: reads by [`Storage::reader`], writes by [`Storage::write`].

use std::time::Duration;

use domain::{api_client::ApiClient, store::Store, task::Task};
use process::metrics::Registry;
use sea_orm::DbBackend;

use super::{
    Error, HealthCheck, WriteError,
    concurrent_writes::{self, WRITE_TIMEOUT},
    connect::{self, SQLITE_READERS, Target},
    connections::Connections,
    delivery_insertion::{self, NewDelivery, SharedInsertions},
    group_commit::GroupCommit,
    schema,
    session::Work,
    shared_reads::SharedReads,
};

/// The database.
#[derive(Debug)]
pub struct Storage {
    reader: Connections,
    pub(super) api_clients: SharedReads<ApiClient>,
    pub(super) tasks: SharedReads<Task>,
    pub(super) tasks_of_any_store: SharedReads<(Store, Task)>,
    writer: Writer,
}

#[derive(Debug)]
enum Writer {
    /// `SQLite` has a single writer: concurrent writes share a commit.
    GroupCommit(GroupCommit),
    /// `PostgreSQL`: one transaction per write, retried after a serialization failure.
    Concurrent(Connections, SharedInsertions),
}

/// The default limit of connections to `PostgreSQL`.
pub const DEFAULT_DATABASE_CONNECTIONS: u32 = 20;

impl Storage {
    /// Opens the database and migrates its schema to this version; creates it if there is none.
    /// With `PostgreSQL`, opens at most `connections` connections.
    pub async fn connect(url: &str, connections: u32) -> Result<Self, Error> {
        Self::connect_with(url, connections, WRITE_TIMEOUT).await
    }

    /// Like [`Storage::connect`], but fails if there is no schema, and never creates a file.
    pub async fn connect_existing(url: &str, connections: u32) -> Result<Self, Error> {
        if migrations::new_sqlite_file(url).is_some() {
            return Err(schema::not_bootstrapped());
        }
        Self::start(url, connections, WRITE_TIMEOUT, true).await
    }

    /// Like [`Storage::connect`], with another timeout for writes on `SQLite`.
    pub(super) async fn connect_with(
        url: &str,
        connections: u32,
        write_timeout: Duration,
    ) -> Result<Self, Error> {
        Self::start(url, connections, write_timeout, false).await
    }

    async fn start(
        url: &str,
        connections: u32,
        write_timeout: Duration,
        must_exist: bool,
    ) -> Result<Self, Error> {
        let target = open(url).await?;
        let session = target
            .session()
            .await
            .map_err(|error| error.explained(url))?;
        if must_exist {
            schema::require(&session).await?;
        }
        schema::migrate(&session).await?;
        if target.backend() == DbBackend::Postgres {
            session.close().await?;
            let reader = Connections::new(target, connections);
            let insertions = SharedInsertions::start(&reader);
            let writer = Writer::Concurrent(reader.clone(), insertions);
            return Ok(Self::new(reader, writer));
        }
        let writer = GroupCommit::start(target.clone(), session, write_timeout);
        let reader = Connections::new(target, SQLITE_READERS);
        Ok(Self::new(reader, Writer::GroupCommit(writer)))
    }

    fn new(reader: Connections, writer: Writer) -> Self {
        Self {
            api_clients: SharedReads::new(reader.clone()),
            tasks: SharedReads::new(reader.clone()),
            tasks_of_any_store: SharedReads::new(reader.clone()),
            reader,
            writer,
        }
    }

    /// Registers the metrics of statements, connections and commits.
    pub fn register_metrics(&self, registry: &mut Registry) {
        self.reader.register_metrics(registry);
    }

    /// For reads that need no transaction. It sees every write that has returned.
    pub fn reader(&self) -> &Connections {
        &self.reader
    }

    pub fn health_check(&self) -> HealthCheck {
        let writes = match &self.writer {
            Writer::GroupCommit(group_commit) => Some(group_commit.write_check()),
            Writer::Concurrent(..) => None,
        };
        HealthCheck::new(self.reader.clone(), writes)
    }

    /// Whether only one core can use the database. Other programs may, such as a backup.
    pub fn is_single_process(&self) -> bool {
        matches!(self.writer, Writer::GroupCommit(_))
    }

    /// Runs work in a transaction, and returns when its commit is on disk. If the work fails, the
    /// transaction is rolled back; after a timeout or a lost connection, the outcome is unknown.
    ///
    /// The work may run more than once: on `PostgreSQL` after a serialization failure, on `SQLite`
    /// when another write of the same group commit failed. So it awaits only SQL, and
    /// captures the values that must be the same in each run (ids, now). Each run gets a clone of
    /// them.
    pub async fn write<T, E>(&self, work: impl Work<Result<T, E>>) -> Result<T, E>
    where
        T: Send + 'static,
        E: WriteError,
    {
        match &self.writer {
            Writer::GroupCommit(group_commit) => group_commit.write(work).await,
            Writer::Concurrent(connections, _) => {
                concurrent_writes::write(connections.clone(), work).await
            }
        }
    }

    /// Like [`Storage::write`] with nothing but [`delivery_insertion::insert`]. Over `PostgreSQL`,
    /// deliveries that arrive together share a statement, without `BEGIN` and `COMMIT` except with
    /// `statement-cache-capacity=0`.
    pub async fn insert_delivery(&self, new: NewDelivery) -> Result<bool, Error> {
        if let Writer::Concurrent(_, insertions) = &self.writer {
            return insertions.insert(new).await;
        }
        let insert = self.write(move |transaction| async move {
            delivery_insertion::insert(&transaction, &new).await
        });
        insert.await
    }

    /// Removes overwritten and deleted rows from `SQLite`'s write-ahead log. `PostgreSQL` keeps
    /// them until it vacuums the table.
    pub async fn truncate_write_ahead_log(&self) -> Result<(), Error> {
        match &self.writer {
            Writer::GroupCommit(group_commit) => group_commit.truncate_write_ahead_log().await,
            Writer::Concurrent(..) => Ok(()),
        }
    }

    /// Waits for the writes in progress and closes the connections.
    pub async fn close(self) -> Result<(), Error> {
        if let Writer::GroupCommit(group_commit) = self.writer {
            group_commit.close().await?;
        }
        self.reader.close().await;
        Ok(())
    }
}

pub(super) async fn open(url: &str) -> Result<Target, Error> {
    let opened = Box::pin(connect::open(url)).await;
    opened.map_err(|error| error.explained(url))
}
