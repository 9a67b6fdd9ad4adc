//! The permits for connections, and those that are idle.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use process::metrics::Sample;
use sea_orm::DbErr;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::refusals::Refusals;
use crate::{
    connect::Target,
    metrics::POOL,
    session::{CLOSED, Connection},
};

/// How long a connection may be idle before it is tested when it is taken. One in constant use
/// needs no test.
pub(super) const TEST_AFTER: Duration = Duration::from_secs(10);

/// How long a test may take.
const TEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Connections that were idle for longer are closed, one for each operation.
pub(super) const MAX_IDLE: Duration = Duration::from_mins(10);

/// Connections that were opened earlier are closed after their operation: new ones are distributed
/// again where servers or poolers share a name.
pub(super) const MAX_LIFETIME: Duration = Duration::from_mins(30);

#[derive(Debug)]
pub(super) struct Pool {
    pub(super) target: Target,
    pub(super) max: usize,
    permits: Arc<Semaphore>,
    /// The one that was used last is at the back.
    idle: Mutex<VecDeque<Idle>>,
    /// Has a clone for each operation that waits for a permit.
    pending: Arc<()>,
    pub(super) refusals: Refusals,
}

#[derive(Debug)]
pub(super) struct Idle {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(super) fn new(target: Target, max: u32) -> Self {
        let max = usize::try_from(max).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            target,
            max,
            permits: Arc::new(Semaphore::new(max)),
            idle: Mutex::default(),
            pending: Arc::default(),
            refusals: Refusals::new(max),
        }
    }

    /// Waits for the operations in progress, up to a timeout, and closes the connections. All later
    /// operations fail.
    pub(super) async fn close(&self, limit: Duration) {
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        // Held until the semaphore is closed: otherwise waiting operations would get the permits.
        let _permits = timeout(limit, self.permits.acquire_many(all)).await;
        self.permits.close();
        let idle = std::mem::take(&mut *self.idle());
        for Idle { connection, .. } in idle {
            // Fails for a connection that is lost.
            let _ = timeout(TEST_TIMEOUT, connection.close()).await;
        }
    }

    pub(super) async fn permit(&self) -> Result<OwnedSemaphorePermit, DbErr> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _pending = Arc::clone(&self.pending);
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.map_err(|_| CLOSED)
    }

    /// The idle connection that was used last. Tests it if that was some time ago, and drops those
    /// that were idle for longer if it fails: they are probably lost too, and each test takes time.
    pub(super) async fn take_idle(&self) -> Option<Connection> {
        let idle = self.idle().pop_back()?;
        let (mut connection, since) = (idle.connection, idle.since);
        if since.elapsed() < TEST_AFTER || Box::pin(is_usable(&mut connection)).await {
            return Some(connection);
        }
        self.idle().retain(|idle| idle.since > since);
        None
    }

    /// Makes a connection idle, and closes the one that has been idle longest, if that is too long; or
    /// closes the connection itself, if it was opened too long ago or all are being closed. Releases the
    /// permit once the connection is idle or closed.
    pub(super) fn keep(&self, connection: Connection, permit: Option<OwnedSemaphorePermit>) {
        let is_current = !self.permits.is_closed() && connection.opened_at.elapsed() < MAX_LIFETIME;
        let (closing, permit) = if is_current {
            let mut idle = self.idle();
            let longest = idle.pop_front_if(|idle| idle.since.elapsed() >= MAX_IDLE);
            let since = Instant::now();
            idle.push_back(Idle { connection, since });
            (longest.map(|longest| longest.connection), None)
        } else {
            (Some(connection), permit)
        };
        if let (Some(connection), Ok(runtime)) = (closing, Handle::try_current()) {
            runtime.spawn(async move {
                // Fails for a connection that is lost.
                let _ = timeout(TEST_TIMEOUT, connection.close()).await;
                drop(permit);
            });
        }
    }

    pub(super) fn idle(&self) -> MutexGuard<'_, VecDeque<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many operations wait for a permit.
    pub(super) fn pending(&self) -> usize {
        Arc::strong_count(&self.pending) - 1
    }

    /// How many connections are in use, and how many are idle.
    pub(super) fn count(&self) -> Vec<Sample> {
        let idle = self.idle().len();
        let unused = self.permits.available_permits() + self.refusals.withheld();
        let used = self.max.saturating_sub(unused);
        [("used", used), ("idle", idle)]
            .map(|(state, count)| {
                let labels = [
                    (POOL, self.target.metrics.pool),
                    ("db_client_connection_state", state),
                ];
                Sample::count(&labels, count)
            })
            .into()
    }
}

/// Whether a connection responds.
pub(super) async fn is_usable(connection: &mut Connection) -> bool {
    matches!(timeout(TEST_TIMEOUT, connection.ping()).await, Ok(Ok(())))
}
