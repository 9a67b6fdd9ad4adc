//! A limited resource that holders share: connections, calls or bytes. When it is exhausted, the holder
//! with most gives way to one that would hold less, and loses its idlest permit.

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

    /// Limits only what each holder has.
    pub fn with_share(share: usize) -> Arc<Self> {
        Self::new(usize::MAX, share, Counters::new("reason", &[]), "")
    }

    /// Takes one for a holder, if it may have one more, never to be evicted.
    pub fn hold(self: &Arc<Self>, holder: H) -> Option<Permit<H>> {
        self.take(holder, 1, Usage::Kept, CancellationToken::new())
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
        drop(state);
        let permit = Permit {
            pool: Arc::clone(self),
            id,
            slot,
        };
        permit.grow(amount).then_some(permit)
    }

    /// The sum of all permits.
    pub fn total(&self) -> usize {
        self.state.lock().total
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
        let has_grown = self.try_grow(more);
        if !has_grown {
            self.pool.shed.inc(self.pool.reason);
        }
        has_grown
    }

    fn try_grow(&self, more: usize) -> bool {
        let pool = &*self.pool;
        let mut state = pool.state.lock();
        let Some(entry) = state.entries.get(&self.id) else {
            return false;
        };
        let holder = entry.holder.clone();
        loop {
            let held = state.held_by(&holder) + more;
            let is_above_share = held > pool.share;
            if !is_above_share && state.total + more <= pool.limit {
                break;
            }
            let candidate = state.candidate(|id, entry, of_other| {
                let rank = entry.slot.rank();
                if entry.holder == holder {
                    id != self.id && rank < first_rank(Usage::Busy)
                } else {
                    !is_above_share && rank < first_rank(Usage::Kept) && of_other > held
                }
            });
            let Some(evicted) = candidate.and_then(|id| state.remove(id)) else {
                return false;
            };
            evicted.slot.evicted.cancel();
            pool.shed.inc(pool.reason);
        }
        state.total += more;
        *state.held.entry(holder).or_default() += more;
        if let Some(entry) = state.entries.get_mut(&self.id) {
            entry.amount += more;
        }
        true
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
