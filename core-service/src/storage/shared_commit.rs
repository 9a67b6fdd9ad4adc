//! Shared commits: a flush costs the same for one write as for many, so what arrives while a
//! commit is under way goes into the next one together, a savepoint each, and is answered when
//! the whole is on disk.

use std::{any::Any, panic::AssertUnwindSafe};

use futures_util::{FutureExt, future::BoxFuture};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::sync::{mpsc, oneshot};

use super::Error;
use crate::error::Error as CoreError;

/// How many writes may wait. More would only wait longer than their callers do.
const WAITING: usize = 4096;

/// How many writes share a commit at most.
const BATCH: usize = 256;

#[derive(Debug)]
pub(super) struct SharedCommit {
    jobs: mpsc::Sender<Box<dyn Job>>,
    writer: tokio::task::JoinHandle<DatabaseConnection>,
}

impl SharedCommit {
    /// Starts the writer on the one connection that writes.
    pub(super) fn start(connection: DatabaseConnection) -> Self {
        let (jobs, waiting) = mpsc::channel(WAITING);
        let writer = tokio::spawn(run(connection, waiting));
        Self { jobs, writer }
    }

    pub(super) async fn write<T, W>(&self, work: W) -> Result<T, CoreError>
    where
        W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, CoreError>>
            + Send
            + 'static,
        T: Send + 'static,
    {
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
        answer.await.map_err(|_| Error::WriterEnded)?
    }

    /// Lets the writer finish what waits, then closes the connection.
    pub(super) async fn close(self) -> Result<(), Error> {
        drop(self.jobs);
        match self.writer.await {
            Ok(connection) => connection.close().await.map_err(Error::from),
            Err(_) => Err(Error::WriterEnded),
        }
    }
}

async fn run(
    connection: DatabaseConnection,
    mut waiting: mpsc::Receiver<Box<dyn Job>>,
) -> DatabaseConnection {
    let mut batch = Vec::with_capacity(BATCH);
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        if batch.len() == 1 || commit(&connection, &mut batch).await.is_err() {
            // One that breaks the transaction must not take its neighbours with it.
            for job in &mut batch {
                if let Err(error) = commit(&connection, std::slice::from_mut(job)).await {
                    job.fail(error);
                }
            }
        }
        for job in batch.drain(..) {
            job.answer();
        }
    }
    connection
}

/// Runs the jobs in one transaction and commits it. After an error none of them has happened.
async fn commit(connection: &DatabaseConnection, jobs: &mut [Box<dyn Job>]) -> Result<(), Error> {
    let options = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let transaction = connection.begin_with_options(options).await?;
    match run_all(&transaction, jobs).await {
        Ok(()) => transaction.commit().await.map_err(Error::from),
        Err(error) => {
            // Void either way: SQLite itself may have rolled back, on a full disk for one.
            let _ = transaction.rollback().await;
            Err(error)
        }
    }
}

async fn run_all(
    transaction: &DatabaseTransaction,
    jobs: &mut [Box<dyn Job>],
) -> Result<(), Error> {
    // Alone, the transaction itself is the savepoint.
    if let [job] = jobs {
        return match job.run(transaction).await {
            Ran::Well => Ok(()),
            Ran::Refused | Ran::Broke => Err(Error::RolledBack),
        };
    }
    for job in jobs {
        let savepoint = transaction.begin().await?;
        match job.run(&savepoint).await {
            Ran::Well => savepoint.commit().await?,
            Ran::Refused => savepoint.rollback().await?,
            Ran::Broke => return Err(Error::RolledBack),
        }
    }
    Ok(())
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
    fn run<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, Ran>;
    /// Notes that the commit failed, unless the work has an error of its own to tell.
    fn fail(&mut self, error: Error);
    fn answer(self: Box<Self>);
}

struct Write<T, W> {
    work: W,
    result: Option<Result<T, CoreError>>,
    reply: oneshot::Sender<Result<T, CoreError>>,
}

impl<T, W> Job for Write<T, W>
where
    W: for<'tx> Fn(&'tx DatabaseTransaction) -> BoxFuture<'tx, Result<T, CoreError>> + Send,
    T: Send,
{
    fn run<'a>(&'a mut self, transaction: &'a DatabaseTransaction) -> BoxFuture<'a, Ran> {
        let work = AssertUnwindSafe((self.work)(transaction)).catch_unwind();
        async move {
            let result = work
                .await
                .unwrap_or_else(|panic| Err(CoreError::Bug(panic_message(panic.as_ref()))));
            let ran = match &result {
                Ok(_) => Ran::Well,
                Err(CoreError::Storage(error)) if error.is_unique_violation() => Ran::Refused,
                Err(CoreError::Storage(_) | CoreError::Bug(_)) => Ran::Broke,
                Err(_) => Ran::Refused,
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
