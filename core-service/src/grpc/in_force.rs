//! What is in force in a store, remembered for a moment: telling a price asks the database for no
//! definitions that it was asked for just now. What is committed goes by the database alone.

use std::{
    hash::Hash,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// How long what another core applies may stay unnoticed by who tells a price.
const BELIEVED: Duration = Duration::from_secs(1);

/// How many are remembered.
const KEPT: u64 = 1_000;

/// How new a definition has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    /// The database's.
    Current,
    /// At most [`BELIEVED`] older, and never older than what this process has applied.
    Recent,
}

/// Counts what this process has applied: what was read before is believed no longer.
#[derive(Default)]
pub(super) struct Applied(AtomicU64);

impl Applied {
    /// After the commit, and before anybody hears of it.
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// Values as the database had them when they were asked for.
pub(super) struct InForce<K, V>(moka::sync::Cache<K, Read<V>>);

#[derive(Clone)]
struct Read<V> {
    value: V,
    /// When reading began, and how much was applied by then.
    at: Instant,
    applied: u64,
}

impl<K, V> InForce<K, V>
where
    K: Copy + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    pub(super) fn new() -> Self {
        Self(moka::sync::Cache::new(KEPT))
    }

    /// The value of a key, of `read` unless one that was read just now will do.
    pub(super) async fn get<E>(
        &self,
        key: K,
        (freshness, applied): (Freshness, &Applied),
        read: impl Future<Output = Result<V, E>>,
    ) -> Result<V, E> {
        let (at, applied) = (Instant::now(), applied.count());
        if freshness == Freshness::Recent
            && let Some(known) = self.0.get(&key)
            && known.applied == applied
            && at.saturating_duration_since(known.at) < BELIEVED
        {
            return Ok(known.value);
        }
        let value = read.await?;
        let known = Read {
            value: value.clone(),
            at,
            applied,
        };
        self.0.insert(key, known);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(
        in_force: &InForce<u8, u8>,
        applied: &Applied,
        freshness: Freshness,
        value: u8,
    ) -> u8 {
        let read = async { Ok::<_, ()>(value) };
        in_force.get(1, (freshness, applied), read).await.unwrap()
    }

    #[tokio::test]
    async fn what_was_read_just_now_is_believed_by_who_does_not_ask_for_more() {
        let (in_force, applied) = (InForce::new(), Applied::default());

        assert_eq!(get(&in_force, &applied, Freshness::Recent, 1).await, 1);
        assert_eq!(get(&in_force, &applied, Freshness::Recent, 2).await, 1);
        assert_eq!(get(&in_force, &applied, Freshness::Current, 3).await, 3);
        assert_eq!(get(&in_force, &applied, Freshness::Recent, 4).await, 3);
    }

    #[tokio::test]
    async fn what_this_process_applied_is_never_overlooked() {
        let (in_force, applied) = (InForce::new(), Applied::default());
        assert_eq!(get(&in_force, &applied, Freshness::Recent, 1).await, 1);

        applied.add();
        assert_eq!(get(&in_force, &applied, Freshness::Recent, 2).await, 2);

        // Who has begun to read before the commit, and ends after it, may have read the old.
        let read = async {
            applied.add();
            Ok::<_, ()>(2)
        };
        let slow = in_force.get(1, (Freshness::Current, &applied), read);
        assert_eq!(slow.await, Ok(2));
        assert_eq!(get(&in_force, &applied, Freshness::Recent, 3).await, 3);
    }

    #[tokio::test]
    async fn a_failure_is_not_remembered() {
        let (in_force, applied) = (InForce::<u8, u8>::new(), Applied::default());

        let failed = in_force.get(1, (Freshness::Recent, &applied), async { Err("away") });
        assert_eq!(failed.await, Err("away"));
        assert_eq!(get(&in_force, &applied, Freshness::Recent, 1).await, 1);
    }
}
