//! A limited resource that holders share: connections, calls or bytes. When it is exhausted, the holder
//! with most gives way to one that would hold less, or as much if the permit is idle. It loses its idlest
//! permit.

use std::{
    cmp::Reverse,
    collections::HashMap,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use process::metrics::Counters;
use tokio_util::sync::CancellationToken;

/// What a permit is used for. A holder's permits are evicted in this order, and within each usage those
/// first that have had it for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// Nothing yet.
    New,
    Idle,
    /// Evicted only for another holder.
    Busy,
    /// Never evicted.
    Kept,
}

/// The bits of a rank below those of the usage: when it began.
const USAGE_SHIFT: u32 = 60;

const fn first_rank(usage: Usage) -> u64 {
    (usage as u64) << USAGE_SHIFT
}

/// A limited resource, shared by holders such as peers.
pub struct Pool<H> {
    limit: usize,
    /// The most that one holder may have.
    share: usize,
    /// Counts what was refused and evicted, for this reason.
    shed: Counters,
    reason: &'static str,
    changes: AtomicU64,
    state: Mutex<State<H>>,
}

struct State<H> {
    next_id: u64,
    entries: HashMap<u64, Entry<H>>,
    held: HashMap<H, usize>,
    total: usize,
}

struct Entry<H> {
    holder: H,
    amount: usize,
    slot: Arc<Slot>,
}

struct Slot {
    rank: AtomicU64,
    evicted: CancellationToken,
}

/// A part of a pool; given back when dropped.
pub struct Permit<H: Eq + Hash + Clone> {
    pool: Arc<Pool<H>>,
    id: u64,
    slot: Arc<Slot>,
}

impl<H: Eq + Hash + Clone> Pool<H> {
    pub fn new(limit: usize, share: usize, shed: Counters, reason: &'static str) -> Arc<Self> {
        Arc::new(Self {
            limit,
            share,
            shed,
            reason,
            changes: AtomicU64::default(),
            state: Mutex::new(State {
                next_id: 0,
                entries: HashMap::new(),
                held: HashMap::new(),
                total: 0,
            }),
        })
    }

    /// Takes an amount for a holder, if it may have as much. The token is cancelled if the permit is
    /// evicted: then its owner must let go of what the permit is for.
    pub fn take(
        self: &Arc<Self>,
        holder: H,
        amount: usize,
        usage: Usage,
        evicted: CancellationToken,
    ) -> Option<Permit<H>> {
        let rank = AtomicU64::new(self.next_rank(usage));
        let slot = Arc::new(Slot { rank, evicted });
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let entry = Entry {
            holder,
            amount: 0,
            slot: Arc::clone(&slot),
        };
        state.entries.insert(id, entry);
        if !self.grow(&mut state, id, amount) {
            state.remove(id);
            return None;
        }
        drop(state);
        Some(Permit {
            pool: Arc::clone(self),
            id,
            slot,
        })
    }

    /// The sum of all permits.
    pub fn total(&self) -> usize {
        self.state.lock().total
    }

    fn grow(&self, state: &mut State<H>, id: u64, more: usize) -> bool {
        let has_grown = self.try_grow(state, id, more);
        if !has_grown {
            self.shed.inc(self.reason);
        }
        has_grown
    }

    fn try_grow(&self, state: &mut State<H>, id: u64, more: usize) -> bool {
        let Some(entry) = state.entries.get(&id) else {
            return false;
        };
        let holder = entry.holder.clone();
        loop {
            let held = state.held_by(&holder) + more;
            let is_above_share = held > self.share;
            if !is_above_share && state.total + more <= self.limit {
                break;
            }
            let candidate = state.candidate(|candidate, entry, of_other| {
                let rank = entry.slot.rank();
                let is_idle = rank < first_rank(Usage::Busy);
                if entry.holder == holder {
                    candidate != id && is_idle
                } else if is_idle {
                    !is_above_share && of_other >= held
                } else {
                    !is_above_share && rank < first_rank(Usage::Kept) && of_other > held
                }
            });
            let Some(evicted) = candidate.and_then(|candidate| state.remove(candidate)) else {
                return false;
            };
            evicted.slot.evicted.cancel();
            self.shed.inc(self.reason);
        }
        state.total += more;
        *state.held.entry(holder).or_default() += more;
        if let Some(entry) = state.entries.get_mut(&id) {
            entry.amount += more;
        }
        true
    }

    fn next_rank(&self, usage: Usage) -> u64 {
        first_rank(usage) + self.changes.fetch_add(1, Ordering::Relaxed)
    }
}

impl<H: Eq + Hash + Clone> Permit<H> {
    pub fn set_usage(&self, usage: Usage) {
        let rank = self.pool.next_rank(usage);
        self.slot.rank.store(rank, Ordering::Relaxed);
    }

    /// Adds to the permit; false if its holder may not have as much, or if it was evicted.
    pub fn grow(&self, more: usize) -> bool {
        let mut state = self.pool.state.lock();
        self.pool.grow(&mut state, self.id, more)
    }
}

impl<H: Eq + Hash + Clone> State<H> {
    fn held_by(&self, holder: &H) -> usize {
        self.held.get(holder).copied().unwrap_or_default()
    }

    /// Of the permits that may be evicted, the idlest of the holder with most.
    fn candidate(&self, may_be_evicted: impl Fn(u64, &Entry<H>, usize) -> bool) -> Option<u64> {
        self.entries
            .iter()
            .filter(|(_, entry)| entry.amount > 0)
            .filter_map(|(id, entry)| {
                let held = self.held_by(&entry.holder);
                let idlest = Reverse(entry.slot.rank());
                may_be_evicted(*id, entry, held).then_some((held, idlest, *id))
            })
            .max()
            .map(|(_, _, id)| id)
    }

    fn remove(&mut self, id: u64) -> Option<Entry<H>> {
        let entry = self.entries.remove(&id)?;
        self.total -= entry.amount;
        let held = self.held_by(&entry.holder) - entry.amount;
        if held == 0 {
            self.held.remove(&entry.holder);
        } else {
            self.held.insert(entry.holder.clone(), held);
        }
        Some(entry)
    }
}

impl Slot {
    fn rank(&self) -> u64 {
        self.rank.load(Ordering::Relaxed)
    }
}

impl<H: Eq + Hash + Clone> Drop for Permit<H> {
    fn drop(&mut self) {
        self.pool.state.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1000;

    fn pool() -> Arc<Pool<u32>> {
        Pool::new(LIMIT, LIMIT / 2, Counters::new("reason", &["test"]), "test")
    }

    /// A permit, and the token of its eviction.
    fn take(
        pool: &Arc<Pool<u32>>,
        holder: u32,
        amount: usize,
        usage: Usage,
    ) -> Option<(Permit<u32>, CancellationToken)> {
        let evicted = CancellationToken::new();
        let permit = pool.take(holder, amount, usage, evicted.clone())?;
        Some((permit, evicted))
    }

    /// A busy permit that takes all it can get, and its amount.
    fn take_all(pool: &Arc<Pool<u32>>, holder: u32) -> (Permit<u32>, CancellationToken, usize) {
        let (permit, evicted) = take(pool, holder, 0, Usage::Busy).unwrap();
        let amount = (0..LIMIT).take_while(|_| permit.grow(1)).count();
        (permit, evicted, amount)
    }

    #[test]
    fn a_holder_gets_at_most_its_share_over_all_its_permits() {
        let pool = pool();

        let first = take_all(&pool, 1);
        let second = take_all(&pool, 1);

        assert_eq!((first.2, second.2), (500, 0));
    }

    #[test]
    fn any_number_of_greedy_holders_leaves_a_share_to_the_next() {
        let pool = pool();
        let greedy: Vec<_> = (1..=200).map(|holder| take_all(&pool, holder)).collect();

        let next = take(&pool, 201, LIMIT / 201, Usage::Busy);

        assert!(next.is_some());
        assert!(greedy.iter().any(|(_, evicted, _)| evicted.is_cancelled()));
        assert!(pool.total() <= LIMIT);
    }

    #[test]
    fn a_busy_permit_is_evicted_only_for_a_holder_that_needs_less_and_a_kept_one_never() {
        let pool = pool();
        let (first, first_evicted) = take(&pool, 1, 300, Usage::Busy).unwrap();
        let (_second, second_evicted) = take(&pool, 1, 200, Usage::Busy).unwrap();
        let (_kept, kept_evicted) = take(&pool, 2, 500, Usage::Kept).unwrap();

        assert!(take(&pool, 3, 500, Usage::Busy).is_none());
        assert!(!first_evicted.is_cancelled() && !second_evicted.is_cancelled());
        assert!(take(&pool, 3, 300, Usage::Busy).is_some());

        assert!(first_evicted.is_cancelled());
        assert!(!second_evicted.is_cancelled() && !kept_evicted.is_cancelled());
        assert!(!first.grow(1), "an evicted permit");
    }

    #[test]
    fn the_idlest_is_evicted_first() {
        let pool = pool();
        let take = |usage| take(&pool, 1, 100, usage).unwrap();
        let [busy, early, late] = [Usage::Busy, Usage::Idle, Usage::Busy].map(take);
        late.0.set_usage(Usage::Idle);
        let new = take(Usage::New);
        let _kept = take(Usage::Kept);

        let evicted = || {
            let tokens = [&busy.1, &early.1, &late.1, &new.1];
            tokens.map(CancellationToken::is_cancelled)
        };
        let mut more = Vec::new();
        for expected in [
            [false, false, false, true],
            [false, true, false, true],
            [false, true, true, true],
        ] {
            more.push(take(Usage::Kept));
            assert_eq!(evicted(), expected);
        }
        let token = CancellationToken::new();
        assert!(
            pool.take(1, 100, Usage::New, token).is_none(),
            "all are busy"
        );
    }

    #[test]
    fn an_idle_permit_is_evicted_for_a_holder_that_would_have_as_much() {
        let pool = pool();
        let (_busy, busy_evicted) = take(&pool, 1, 500, Usage::Busy).unwrap();
        let (_idle, idle_evicted) = take(&pool, 2, 500, Usage::Idle).unwrap();

        assert!(take(&pool, 3, 500, Usage::New).is_some());

        assert!(idle_evicted.is_cancelled() && !busy_evicted.is_cancelled());
    }

    #[test]
    fn a_dropped_permit_is_available_again_and_is_not_evicted() {
        let pool = pool();
        for _ in 0..3 {
            let (permit, evicted, amount) = take_all(&pool, 1);
            drop(permit);
            assert_eq!((amount, evicted.is_cancelled()), (500, false));
        }

        let state = pool.state.lock();
        assert_eq!(
            (state.total, state.held.len(), state.entries.len()),
            (0, 0, 0)
        );
    }
}
