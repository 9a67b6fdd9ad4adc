//! Shared commits: a flush costs the same for one write as for many, so what arrives while a
//! commit is under way goes into the next one together, a savepoint each, and is answered when
//! the whole is on disk.

use std::{
    any::Any,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{Error, WriteError, connect::open_sqlite_writer};

/// How many writes may wait. More would only wait longer than their callers do.
const WAITING: usize = 4096;

/// How many writes share a commit at most.
const BATCH: usize = 256;

#[derive(Debug)]
pub(super) struct SharedCommit {
    jobs: mpsc::Sender<Box<dyn Job>>,
    under_way: UnderWay,
    /// How long a write may take.
    patience: Duration,
    writer: tokio::task::JoinHandle<Result<(), Error>>,
}

impl SharedCommit {
    /// Starts the writer on the one connection that writes, opened from a URL.
    pub(super) fn start(url: String, connection: DatabaseConnection, patience: Duration) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING);
        let under_way = UnderWay::default();
        let writer = tokio::spawn(
            Writer {
                url,
                connection: Some(connection),
                under_way: under_way.clone(),
            }
            .run(waiting),
        );
        Self {
            jobs,
            under_way,
            patience,
            writer,
        }
    }

    pub(super) async fn write<T, E, W>(&self, work: W) -> Result<T, E>
    where
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: WriteError,
    {
        // A disk that has not answered for so long may not for hours: nobody else need wait.
        if self.under_way.is_over(self.patience) {
            return Err(Error::Late.into());
        }
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Write {
            work,
            result: None,
            reply,
        });
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::Overloaded,
            mpsc::error::TrySendError::Closed(_) => Error::WriterEnded,
        })?;
        // What is given up before its turn comes is never done.
        match tokio::time::timeout(self.patience, answer).await {
            Ok(answer) => answer.map_err(|_| Error::WriterEnded)?,
            Err(_) => Err(Error::Late.into()),
        }
    }

    /// Lets the writer finish what waits, then closes the connection.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.jobs);
        self.writer.await.map_err(|_| Error::WriterEnded)?
    }
}

/// Since when a commit has been under way, if one is.
#[derive(Clone, Debug, Default)]
struct UnderWay(Arc<Mutex<Option<Instant>>>);

impl UnderWay {
    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn is_over(&self, patience: Duration) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| since.elapsed() >= patience)
    }
}

/// Writes over one connection, and over a new one after each failure.
struct Writer {
    url: String,
    connection: Option<DatabaseConnection>,
    under_way: UnderWay,
}

impl Writer {
    /// Serves until nobody can ask any more, and closes.
    async fn run(mut self, mut waiting: mpsc::Receiver<Box<dyn Job>>) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(BATCH);
        while waiting.recv_many(&mut batch, BATCH).await > 0 {
            // While the disk stood still, callers gave up and may have asked again elsewhere.
            batch.retain(|job| job.is_wanted());
            if batch.len() <= 1 || self.commit(&mut batch).await.is_err() {
                // One that breaks the transaction must not take its neighbours with it.
                for job in &mut batch {
                    if let Err(error) = self.commit(std::slice::from_mut(job)).await {
                        job.fail(error);
                    }
                }
            }
            for job in batch.drain(..) {
                job.answer();
            }
        }
        match self.connection {
            Some(connection) => connection.close().await.map_err(Error::from),
            None => Ok(()),
        }
    }

    /// Runs the jobs in one transaction and commits it. After an error none of them has
    /// happened.
    async fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Error> {
        self.under_way.set(Some(Instant::now()));
        let result = self.try_to_commit(jobs).await;
        self.under_way.set(None);
        result
    }

    async fn try_to_commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => open_sqlite_writer(&self.url).await?,
        };
        let result = transact(&connection, jobs).await;
        if result.is_ok() {
            self.connection = Some(connection);
        } else if let Err(error) = connection.close().await {
            // SQLite itself may have ended the transaction (a full disk, an I/O error), and the
            // driver would not know: what is a new transaction to us would be a savepoint to
            // it, never committed. Only a new connection knows where it stands.
            tracing::warn!(%error, "a broken connection could not be closed");
        }
        result
    }
}

async fn transact(connection: &DatabaseConnection, jobs: &mut [Box<dyn Job>]) -> Result<(), Error> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let transaction = connection.begin_with_options(options).await?;
    for job in jobs.iter_mut().filter(|job| job.is_wanted()) {
        let savepoint = transaction.begin().await?;
        match job.run(&savepoint).await {
            Ran::Well => savepoint.commit().await?,
            Ran::Refused => savepoint.rollback().await?,
            Ran::Broke => return Err(Error::RolledBack),
        }
    }
    transaction.commit().await.map_err(Error::from)
}

/// How a job's work went.
enum Ran {
    Well,
    /// The work said no; the database is fine.
    Refused,
    /// The database failed or the work panicked: the transaction can't be trusted.
    Broke,
}

/// A [`Write`] of any type.
trait Job: Send {
    /// Whether anybody waits for the answer.
    fn is_wanted(&self) -> bool;
    fn run<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, Ran>;
    /// Notes that the commit failed, unless the work has an error of its own to tell.
    fn fail(&mut self, error: Error);
    fn answer(self: Box<Self>);
}

struct Write<T, E, W> {
    work: W,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<T, E, W> Job for Write<T, E, W>
where
    W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, E>> + Send,
    T: Send,
    E: WriteError,
{
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, Ran> {
        let work = AssertUnwindSafe((self.work)(transaction)).catch_unwind();
        async move {
            let result = work
                .await
                .unwrap_or_else(|panic| Err(Error::Panicked(panic_message(panic.as_ref())).into()));
            let ran = match &result {
                Ok(_) => Ran::Well,
                Err(error) => match error.as_storage() {
                    Some(error) if !error.is_unique_violation() => Ran::Broke,
                    _ => Ran::Refused,
                },
            };
            self.result = Some(result);
            ran
        }
        .boxed()
    }

    fn fail(&mut self, error: Error) {
        if !matches!(self.result, Some(Err(_))) {
            self.result = Some(Err(error.into()));
        }
    }

    fn answer(self: Box<Self>) {
        let result = self
            .result
            .unwrap_or_else(|| Err(Error::WriterEnded.into()));
        // A caller that has gone away needs no answer; what it asked for is done.
        let _ = self.reply.send(result);
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use futures_util::{FutureExt as _, future::join_all};
    use sea_orm::ConnectionTrait as _;
    use tokio::sync::Semaphore;

    use crate::{Error, Storage, WriteError, fixture};

    /// The error of a caller with errors of its own.
    #[derive(Debug, thiserror::Error)]
    enum CallerError {
        #[error("refused")]
        Refused,
        #[error(transparent)]
        Storage(#[from] Error),
    }

    impl WriteError for CallerError {
        fn as_storage(&self) -> Option<&Error> {
            match self {
                Self::Storage(error) => Some(error),
                Self::Refused => None,
            }
        }
    }

    /// Holds the writer until so many other writes wait, so that they share a commit.
    async fn hold(storage: &Arc<Storage>) -> Arc<Semaphore> {
        let (running, release) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (started, released) = (Arc::clone(&running), Arc::clone(&release));
        let held = Arc::clone(storage);
        tokio::spawn(async move {
            held.write(move |_| {
                let (started, released) = (Arc::clone(&started), Arc::clone(&released));
                Box::pin(async move {
                    started.add_permits(1);
                    let _permit = released.acquire().await;
                    Ok::<_, Error>(())
                })
            })
            .await
        });
        let _running = running.acquire().await.unwrap();
        release
    }

    async fn add_store(storage: &Storage, name: &str) -> Result<(), Error> {
        let store = fixture::store(name);
        storage
            .write(move |transaction| {
                let store = store.clone();
                Box::pin(async move { super::super::stores::insert(transaction, &store).await })
            })
            .await
    }

    async fn names(storage: &Storage) -> Vec<String> {
        let mut names: Vec<_> = super::super::stores::list(storage.reader())
            .await
            .unwrap()
            .into_iter()
            .map(|store| store.display_name)
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn writes_that_share_a_commit_are_all_kept() {
        let (_directory, storage) = fixture::sqlite().await;
        let release = hold(&storage).await;

        let expected: Vec<_> = (10..74).map(|number| number.to_string()).collect();
        let writes = join_all(expected.iter().map(|name| add_store(&storage, name)));
        let (results, ()) = tokio::join!(writes, async { release.add_permits(1) });

        assert!(results.iter().all(Result::is_ok));
        assert_eq!(names(&storage).await, expected);
    }

    #[tokio::test]
    async fn a_write_that_says_no_leaves_nothing_and_harms_no_neighbour() {
        let (_directory, storage) = fixture::sqlite().await;
        let release = hold(&storage).await;

        let refused = storage.write(|transaction| {
            Box::pin(async move {
                let store = fixture::store("refused");
                super::super::stores::insert(transaction, &store).await?;
                Err::<(), _>(CallerError::Refused)
            })
        });
        let (before, refused, after, ()) = tokio::join!(
            add_store(&storage, "before"),
            refused,
            add_store(&storage, "after"),
            async { release.add_permits(1) }
        );

        assert!(before.is_ok() && after.is_ok());
        assert!(matches!(refused, Err(CallerError::Refused)));
        assert_eq!(names(&storage).await, ["after", "before"]);
    }

    #[tokio::test]
    async fn a_write_that_breaks_the_transaction_breaks_its_own_alone() {
        let (_directory, storage) = fixture::sqlite().await;
        let release = hold(&storage).await;

        let broken = storage.write(|transaction| {
            Box::pin(async move {
                // Ends the shared transaction under everybody.
                let ended = transaction.execute_unprepared("ROLLBACK").await;
                ended.map_err(Error::from)?;
                let nonsense = transaction.execute_unprepared("nonsense").await;
                nonsense.map_err(Error::from)?;
                Ok(())
            })
        });
        let panicking = storage.write(|_| -> futures_util::future::BoxFuture<'_, Result<(), _>> {
            Box::pin(async move { panic!("a bug") })
        });
        let (before, broken, panicked, after, ()) = tokio::join!(
            add_store(&storage, "before"),
            broken,
            panicking,
            add_store(&storage, "after"),
            async { release.add_permits(1) }
        );

        assert!(before.is_ok() && after.is_ok());
        assert!(matches!(broken, Err(Error::Database(_))));
        assert!(matches!(panicked, Err(Error::Panicked(what)) if what == "a bug"));
        assert_eq!(names(&storage).await, ["after", "before"]);
        assert!(add_store(&storage, "later").await.is_ok());
    }

    #[tokio::test]
    async fn a_writer_that_stands_still_takes_no_more_and_does_not_what_was_given_up() {
        let (_directory, storage) = fixture::impatient_sqlite(Duration::from_millis(20)).await;
        let release = hold(&storage).await;
        let is_late = |result| matches!(result, Err::<(), _>(Error::Late));

        assert!(is_late(add_store(&storage, "given up").await));
        // At once: it need not be waited for.
        let turned_away = add_store(&storage, "turned away").now_or_never();
        assert!(turned_away.is_some_and(is_late));

        release.add_permits(1);
        while is_late(add_store(&storage, "later").await) {
            tokio::task::yield_now().await;
        }
        assert_eq!(names(&storage).await, ["later"]);
    }

    #[tokio::test]
    async fn closing_waits_for_what_was_asked_for() {
        let (directory, storage) = fixture::sqlite().await;
        let release = hold(&storage).await;
        let asked = Arc::clone(&storage);
        let write = tokio::spawn(async move { add_store(&asked, "asked for").await });
        tokio::task::yield_now().await;

        release.add_permits(1);
        write.await.unwrap().unwrap();
        Arc::into_inner(storage).unwrap().close().await.unwrap();

        let reopened = fixture::open(&directory).await;
        assert_eq!(names(&reopened).await, ["asked for"]);
    }
}
