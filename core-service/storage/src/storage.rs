//! The entry point: reads by [`Storage::reader`], writes by [`Storage::write`].

use std::{sync::Arc, time::Duration};

use domain::{api_client::ApiClient, store::Store, task::Task};
use futures_util::FutureExt as _;
use process::{metrics::Registry, traces::Origin};
use sea_orm::DbBackend;

use super::{
    Error, HealthCheck, WriteError,
    connect::{self, SQLITE_READERS, Target},
    connections::{self, Connections},
    delivery_insertion::{self, Insertion, NewDelivery, SharedInsertions},
    group_commit::GroupCommit,
    idempotency_keys::NewResponse,
    schema,
    session::Work,
    shared_reads::SharedReads,
};

/// The timeout of a write, over either database: longer than any takes while the database responds, and less than the
/// gateway's 30 s, so that the caller receives the error.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Storage {
    reader: Connections,
    pub(super) api_clients: SharedReads<ApiClient>,
    pub(super) stores: SharedReads<Store>,
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
        Self::start(url, connections, WRITE_TIMEOUT, false).await
    }

    /// Like [`Storage::connect`], but fails if there is no schema, and never creates a file.
    pub async fn connect_existing(url: &str, connections: u32) -> Result<Self, Error> {
        if migrations::new_sqlite_file(url).is_some() {
            return Err(schema::not_bootstrapped());
        }
        Self::start(url, connections, WRITE_TIMEOUT, true).await
    }

    /// Opens the database, with a timeout for writes on `SQLite`. With `must_exist`, fails if there is no
    /// schema.
    pub(super) async fn start(
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
        if target.backend == DbBackend::Postgres {
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
            stores: SharedReads::new(reader.clone()),
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
                write_concurrently(connections.clone(), work).await
            }
        }
    }

    /// Like [`Storage::write`] with nothing but [`delivery_insertion::insert`]. Over `PostgreSQL`,
    /// deliveries that arrive together share a statement, without `BEGIN` and `COMMIT` except with
    /// `statement-cache-capacity=0`. Fails with a unique violation or a lock timeout, and inserts nothing, if
    /// another request has or may have the key of the response.
    pub async fn insert_with_response(
        &self,
        new: Arc<NewDelivery>,
        response: Option<NewResponse>,
    ) -> Result<bool, Error> {
        if let Writer::Concurrent(_, insertions) = &self.writer {
            return insertions.insert(Insertion { new, response }).await;
        }
        let insert = self.write(move |transaction| async move {
            delivery_insertion::insert(&transaction, &new, response.as_ref()).await
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

/// Runs work in a transaction of `PostgreSQL`: several run at the same time, and again after a
/// serialization failure.
async fn write_concurrently<T, E>(
    connections: Connections,
    work: impl Work<Result<T, E>>,
) -> Result<T, E>
where
    T: Send + 'static,
    E: WriteError,
{
    let write = async move { with_retries(|| write_once(&connections, work.clone())).await };
    spawned(write).await
}

/// Runs a write on a task of its own, so that a cancelled caller does not interrupt it.
pub(super) fn spawned<T, E>(
    write: impl Future<Output = Result<T, E>> + Send + 'static,
) -> impl Future<Output = Result<T, E>> + Send
where
    T: Send + 'static,
    E: WriteError,
{
    // Not in an async function: its future, and those of its callers, would have room for the write.
    let task = tokio::spawn(Origin::current().run(write));
    task.map(|ended| ended.unwrap_or_else(|error| Err(Error::Panicked(error.to_string()).into())))
}

/// Repeats a write after serialization failures, until the timeout.
pub(super) async fn with_retries<T, E, W>(write: impl Fn() -> W) -> Result<T, E>
where
    W: Future<Output = Result<T, E>>,
    E: WriteError,
{
    let conflicts = |error: &E| matches!(error.as_storage(), Some(Error::SerializationFailure(_)));
    let result = connections::with_retries(WRITE_TIMEOUT, write, conflicts).await;
    result.unwrap_or_else(|| Err(Error::Timeout.into()))
}

async fn write_once<T, E>(connections: &Connections, work: impl Work<Result<T, E>>) -> Result<T, E>
where
    E: WriteError,
{
    let (session, checkout) = connections.begin().await.map_err(Error::from)?;
    let result = work(session.clone()).await;
    let ended = checkout.end(session, result.is_ok()).await;
    ended.map_err(Error::from)?;
    result
}
