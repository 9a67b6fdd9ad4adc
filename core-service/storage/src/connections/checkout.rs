//! A connection in use.

use std::sync::Arc;

use process::traces::TraceSpan;
use sea_orm::DbErr;
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit, time::Instant};

use super::pool::{Pool, is_usable};
use crate::{
    error::is_serialization_failure,
    session::{CLOSED, Connection, Session},
};

/// The permit to use one connection, and that connection.
///
/// If it is dropped with the connection, as after an error or when a caller is cancelled, the
/// connection is tested before it is used again: it may be lost, or have a response to read.
pub(crate) struct Checkout {
    connection: Option<Connection>,
    pool: Arc<Pool>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Checkout {
    pub(super) fn new(
        connection: Connection,
        pool: &Arc<Pool>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            connection: Some(connection),
            pool: Arc::clone(pool),
            permit: Some(permit),
        }
    }

    pub(super) fn connection(&mut self) -> Result<&mut Connection, DbErr> {
        self.connection.as_mut().ok_or(CLOSED)
    }

    pub(super) fn take(&mut self) -> Result<Connection, DbErr> {
        self.connection.take().ok_or(CLOSED)
    }

    /// Commits the transaction of a session, or rolls it back. The error is that of the commit: what
    /// is not rolled back is lost with its connection.
    pub(crate) async fn end(mut self, session: Session, commits: bool) -> Result<(), DbErr> {
        if !commits {
            if session.roll_back().await.is_ok()
                && let Some(connection) = session.into_connection()
            {
                self.keep(connection);
            }
            return Ok(());
        }
        let started = Instant::now();
        let committed = session.commit().await;
        let trace = TraceSpan::current();
        let metrics = &self.pool.target.metrics;
        metrics.committed(started.elapsed(), committed.is_err(), trace.as_ref());
        // After another error, the transaction may still be open.
        if committed
            .as_ref()
            .err()
            .is_none_or(is_serialization_failure)
        {
            self.connection = session.into_connection();
        } else {
            // Close the connection before the permit is released: no more are open than permits exist.
            drop(session);
        }
        self.finish(committed)
    }

    /// Makes the connection available again if its operation has succeeded.
    pub(super) fn finish<T, E>(mut self, result: Result<T, E>) -> Result<T, E> {
        if result.is_ok()
            && let Some(connection) = self.connection.take()
        {
            self.keep(connection);
        }
        result
    }

    fn keep(mut self, connection: Connection) {
        self.pool.keep(connection, self.permit.take());
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let (Some(mut connection), Ok(runtime)) = (self.connection.take(), Handle::try_current())
        else {
            return;
        };
        let (pool, permit) = (Arc::clone(&self.pool), self.permit.take());
        runtime.spawn(async move {
            if is_usable(&mut connection).await {
                pool.keep(connection, permit);
            }
        });
    }
}
