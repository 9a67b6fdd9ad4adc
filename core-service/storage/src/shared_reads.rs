//! Reads by key that arrive at the same time share a statement: one that reads 8 rows takes a fifth of the
//! processor time of 8 statements. The first begins after all other tasks that are ready have run, and
//! takes their reads with it. So reads do not wait for each other's statements, share more of them the busier
//! the process is, and see every write that returned before them.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use parking_lot::Mutex;
use sea_orm::{ConnectionTrait as _, DbBackend, DbErr, QueryResult, Statement, Value};
use tokio::{runtime::Handle, sync::oneshot, task::yield_now, time::timeout};

use super::{Error, connections::Connections, rows};

/// A shared statement that takes longer is abandoned: its connection may be lost.
const MAX_DURATION: Duration = Duration::from_secs(1);

/// How many keys a statement reads.
const MAX_KEYS: usize = 32;
const _: () = assert!(MAX_KEYS.is_power_of_two(), "lists of keys are padded");

/// A row that is read by a key which no other row has, as a domain type.
pub(super) trait SharedRow: Clone + Debug + Send + 'static {
    type Key: Clone + Debug + Ord + Send + Sync + 'static;

    /// The table or the join of tables.
    const FROM: &'static str;

    /// The columns of the key.
    const KEY: &'static [&'static str];

    /// The columns to read.
    fn columns() -> Vec<String>;

    /// The values of the key's columns.
    fn values(key: &Self::Key) -> Vec<Value>;

    fn key(row: &QueryResult) -> Result<Self::Key, DbErr>;

    fn read(row: &QueryResult) -> Result<Self, Error>;
}

/// Clones share the queue.
#[derive(Debug)]
pub(super) struct SharedReads<T: SharedRow>(Arc<Reads<T>>);

#[derive(Debug)]
struct Reads<T: SharedRow> {
    backend: DbBackend,
    connections: Connections,
    /// The statements that read 1, 2, 4 … [`MAX_KEYS`] keys.
    statements: Vec<String>,
    /// Those whose statement has not begun. The first begins it.
    waiting: Mutex<Vec<Read<T>>>,
}

#[derive(Debug)]
struct Read<T: SharedRow> {
    key: T::Key,
    reply: oneshot::Sender<Reply<T>>,
}

/// What was found, and how long the statement took.
type Reply<T> = (Result<Option<T>, Error>, Duration);

/// What a statement has found. One row that is not valid must not fail the reads of others.
type Found<T> = Vec<(<T as SharedRow>::Key, Result<T, Error>)>;

impl<T: SharedRow> SharedReads<T> {
    pub(super) fn new(connections: Connections) -> Self {
        let backend = connections.get_database_backend();
        let sizes = (0..=MAX_KEYS.ilog2()).map(|power| 1 << power);
        Self(Arc::new(Reads {
            backend,
            connections,
            statements: sizes.map(|keys| statement::<T>(backend, keys)).collect(),
            waiting: Mutex::default(),
        }))
    }

    pub(super) async fn find(&self, key: T::Key) -> Result<Option<T>, Error> {
        let (reply, result) = oneshot::channel();
        let is_first = {
            let mut waiting = self.0.waiting.lock();
            let key = key.clone();
            waiting.push(Read { key, reply });
            waiting.len() == 1
        };
        if is_first {
            let leader = Leader(Some(self));
            // Callers that are ready add their reads.
            yield_now().await;
            let reads = leader.take_reads();
            if reads.len() == 1 {
                return self.read_one(key).await;
            }
            self.begin(reads);
        }
        let (result, duration) = result
            .await
            .map_err(|_| Error::Panicked("in a shared statement".to_owned()))?;
        let metrics = self.0.connections.metrics();
        metrics.shared("SELECT", duration, result.is_err());
        result
    }

    /// Begins the statements of reads. Spawned, so that a cancelled caller does not interrupt them.
    fn begin(&self, mut reads: Vec<Read<T>>) {
        reads.retain(|read| !read.reply.is_closed());
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let mut replies = BTreeMap::<_, Vec<_>>::new();
        for Read { key, reply } in reads {
            replies.entry(key).or_default().push(reply);
        }
        let mut replies = replies.into_iter();
        while replies.len() > 0 {
            let together = replies.by_ref().take(MAX_KEYS).collect();
            runtime.spawn(self.clone().read_together(together));
        }
    }

    async fn read_one(&self, key: T::Key) -> Result<Option<T>, Error> {
        let found = self.query(vec![key]).await?.pop();
        found.map(|(_, value)| value).transpose()
    }

    async fn query(&self, keys: Vec<T::Key>) -> Result<Found<T>, Error> {
        let Reads {
            backend,
            connections,
            statements,
            ..
        } = &*self.0;
        let statement = &statements[keys.len().ilog2() as usize];
        let parameters = keys.iter().flat_map(T::values);
        let statement = Statement::from_sql_and_values(*backend, statement, parameters);
        let rows = connections.query_all_raw(statement).await?;
        let found = rows.iter().map(|row| Ok((T::key(row)?, T::read(row))));
        found.collect()
    }

    /// Reads values together, and replies. If the statement fails, its connection may be lost: then each is
    /// read alone.
    async fn read_together(self, mut replies: BTreeMap<T::Key, Vec<oneshot::Sender<Reply<T>>>>) {
        let started = Instant::now();
        let reply = |replies: Option<Vec<oneshot::Sender<Reply<T>>>>,
                     result: Result<Option<T>, Error>| {
            for sender in replies.into_iter().flatten() {
                // The caller may have been cancelled.
                let _ = sender.send((result.clone(), started.elapsed()));
            }
        };
        let keys = rows::padded(replies.keys().cloned());
        let found = timeout(MAX_DURATION, self.query(keys)).await;
        if let Ok(Ok(found)) = found {
            for (key, value) in found {
                reply(replies.remove(&key), value.map(Some));
            }
            for replies in replies.into_values() {
                reply(Some(replies), Ok(None));
            }
            return;
        }
        let reads = replies.into_iter().map(async |(key, replies)| {
            reply(Some(replies), self.read_one(key).await);
        });
        join_all(reads).await;
    }

    fn take_waiting(&self) -> Vec<Read<T>> {
        std::mem::take(&mut *self.0.waiting.lock())
    }
}

impl<T: SharedRow> Clone for SharedReads<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The statement that reads the rows of keys.
fn statement<T: SharedRow>(backend: DbBackend, keys: usize) -> String {
    let (columns, from, key) = (T::columns().join(", "), T::FROM, T::KEY.join(", "));
    let values = rows::placeholders(&mut (1..), keys, T::KEY.len());
    let select = format!("SELECT {columns} FROM {from} WHERE ({key})");
    if keys == 1 {
        format!("{select} = {values}")
    } else if backend == DbBackend::Sqlite {
        format!("{select} IN (VALUES {values})")
    } else {
        // Each key is found as by the statement for one. With `IN`, or without `LIMIT`, which makes a
        // join of it, PostgreSQL may keep a plan that was made while the table was small, and reads
        // all of it once for all keys.
        let numbers = (1..=T::KEY.len()).map(|number| format!("keys.column{number}"));
        let key = numbers.collect::<Vec<_>>().join(", ");
        format!(
            "SELECT found.* FROM (VALUES {values}) AS keys
             CROSS JOIN LATERAL ({select} = ({key}) LIMIT 1) AS found"
        )
    }
}

/// The first of the waiting reads leads them: it takes all. If it is cancelled before, the others begin.
struct Leader<'a, T: SharedRow>(Option<&'a SharedReads<T>>);

impl<T: SharedRow> Leader<'_, T> {
    /// All waiting reads, of which this is the first.
    fn take_reads(mut self) -> Vec<Read<T>> {
        let reads = self.0.take().map(SharedReads::take_waiting);
        reads.unwrap_or_default()
    }
}

impl<T: SharedRow> Drop for Leader<'_, T> {
    fn drop(&mut self) {
        if let Some(reads) = self.0 {
            reads.begin(reads.take_waiting());
        }
    }
}
