//! A limited resource that holders share: connections, calls or bytes. When it is exhausted, the holder
//! with most gives way to one that would hold less, or as much if the permit is idle. It loses the permit
//! that has been idle for longest.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::Arc,
};

use parking_lot::Mutex;
use process::metrics::Counters;
use tokio_util::sync::CancellationToken;

/// What a permit is used for. A holder's permits are evicted in this order, and within each usage those
/// first that have had it for longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    Idle,
    /// Of a request whose peer does not send or read yet. Evicted only for another holder.
    Waiting,
    /// Of a request that is executed. Evicted only for another holder.
    Busy,
    /// Never evicted.
    Kept,
}

/// A limited resource, shared by holders such as peers.
pub struct Pool<H> {
    limit: usize,
    /// The most that one holder may have.
    share: usize,
    /// Counts what was refused and evicted, for this reason.
    shed: Counters,
    reason: &'static str,
    state: Mutex<State<H>>,
}

struct State<H> {
    /// The id of the next permit, and the instant of the next change of a usage.
    next: u64,
    permits: HashMap<u64, Entry<H>>,
    holders: HashMap<H, Holder>,
    /// Of each holder that holds something.
    ranks: BTreeSet<Rank>,
    total: usize,
}

struct Entry<H> {
    holder: H,
    amount: usize,
    age: Age,
    evicted: CancellationToken,
}

/// Orders permits: the first is evicted first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Age {
    usage: Usage,
    /// When the usage began.
    since: u64,
    id: u64,
}

/// Orders holders: the last has most, and among its equals the permit that is evicted first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    held: usize,
    first: Reverse<Age>,
}

#[derive(Default)]
struct Holder {
    held: usize,
    /// Of its permits of more than nothing.
    ages: BTreeSet<Age>,
}

/// A part of a pool; given back when dropped.
pub struct Permit<H: Eq + Hash + Clone> {
    pool: Arc<Pool<H>>,
    id: u64,
}

impl<H: Eq + Hash + Clone> Pool<H> {
    pub fn new(limit: usize, share: usize, shed: Counters, reason: &'static str) -> Arc<Self> {
        Arc::new(Self {
            limit,
            share,
            shed,
            reason,
            state: Mutex::new(State {
                next: 0,
                permits: HashMap::new(),
                holders: HashMap::new(),
                ranks: BTreeSet::new(),
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
        let mut state = self.state.lock();
        let id = state.next();
        let age = Age {
            usage,
            since: id,
            id,
        };
        let entry = Entry {
            holder,
            amount: 0,
            age,
            evicted,
        };
        state.permits.insert(id, entry);
        if !self.grow(&mut state, id, amount) {
            state.remove(id);
            return None;
        }
        drop(state);
        let pool = Arc::clone(self);
        Some(Permit { pool, id })
    }

    /// The sum of a holder's permits.
    pub fn held_by(&self, holder: &H) -> usize {
        self.state.lock().held_by(holder)
    }

    /// The sum of all permits.
    pub fn total(&self) -> usize {
        self.state.lock().total
    }

    fn grow(&self, state: &mut State<H>, id: u64, more: usize) -> bool {
        let Some(holder) = state.permits.get(&id).map(|entry| entry.holder.clone()) else {
            return false;
        };
        loop {
            let held = state.held_by(&holder) + more;
            let is_above_share = held > self.share;
            if !is_above_share && state.total + more <= self.limit {
                break;
            }
            self.shed.inc(self.reason);
            let of_others = (!is_above_share).then(|| state.candidate_of_others(&holder, held));
            let candidate = of_others.flatten().max(state.candidate_of(&holder, id));
            let evicted = candidate.and_then(|candidate| state.remove(candidate.first.0.id));
            let Some(evicted) = evicted else { return false };
            evicted.evicted.cancel();
        }
        state.change(id, |entry| entry.amount += more);
        true
    }
}

impl<H: Eq + Hash + Clone> Permit<H> {
    pub fn set_usage(&self, usage: Usage) {
        let mut state = self.pool.state.lock();
        let since = state.next();
        state.change(self.id, |entry| {
            entry.age.usage = usage;
            entry.age.since = since;
        });
    }

    /// Adds to the permit; false if its holder may not have as much, or if it was evicted.
    pub fn grow(&self, more: usize) -> bool {
        let mut state = self.pool.state.lock();
        self.pool.grow(&mut state, self.id, more)
    }
}

impl Holder {
    fn rank(&self) -> Option<Rank> {
        let first = self.ages.first()?;
        Some(Rank {
            held: self.held,
            first: Reverse(*first),
        })
    }
}

impl<H: Eq + Hash + Clone> State<H> {
    fn next(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn held_by(&self, holder: &H) -> usize {
        self.holders.get(holder).map_or(0, |holder| holder.held)
    }

    /// A holder's permit to evict for another of its own: the first except this one, if it is idle.
    fn candidate_of(&self, holder: &H, except: u64) -> Option<Rank> {
        let holder = self.holders.get(holder)?;
        let first = holder.ages.iter().find(|age| age.id != except)?;
        (first.usage == Usage::Idle).then_some(Rank {
            held: holder.held,
            first: Reverse(*first),
        })
    }

    /// The permit to evict for a holder that will have this much: of the other holder with most.
    fn candidate_of_others(&self, holder: &H, held: usize) -> Option<Rank> {
        let larger = self.ranks.iter().rev().take_while(|rank| rank.held >= held);
        let mut evictable = larger.filter(|rank| {
            let Age { usage, id, .. } = rank.first.0;
            let is_other = || self.permits.get(&id).is_some_and(|of| of.holder != *holder);
            (usage == Usage::Idle || usage < Usage::Kept && rank.held > held) && is_other()
        });
        evictable.next().copied()
    }

    /// Changes a permit, unless it was evicted.
    fn change(&mut self, id: u64, change: impl FnOnce(&mut Entry<H>)) {
        let Some(entry) = self.permits.get_mut(&id) else {
            return;
        };
        let (amount, age) = (entry.amount, entry.age);
        change(entry);
        if amount == 0 && entry.amount == 0 {
            return;
        }
        let holder = self.holders.entry(entry.holder.clone()).or_default();
        let rank = holder.rank();
        // What is new is inserted first: so a set of one element keeps its memory.
        if entry.amount > 0 {
            holder.ages.insert(entry.age);
        }
        if entry.amount == 0 || entry.age != age {
            holder.ages.remove(&age);
        }
        holder.held = holder.held - amount + entry.amount;
        self.total = self.total - amount + entry.amount;
        let new_rank = holder.rank();
        self.ranks.extend(new_rank);
        if let Some(rank) = rank.filter(|_| rank != new_rank) {
            self.ranks.remove(&rank);
        }
        if new_rank.is_none() {
            self.holders.remove(&entry.holder);
        }
    }

    fn remove(&mut self, id: u64) -> Option<Entry<H>> {
        self.change(id, |entry| entry.amount = 0);
        self.permits.remove(&id)
    }
}

impl<H: Eq + Hash + Clone> Drop for Permit<H> {
    fn drop(&mut self) {
        self.pool.state.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests;
