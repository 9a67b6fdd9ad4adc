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
    /// Evicted only for another holder.
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
        (first.usage < Usage::Busy).then_some(Rank {
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
            (usage < Usage::Busy || usage == Usage::Busy && rank.held > held) && is_other()
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
    fn the_permit_that_is_idle_for_longest_is_evicted_first() {
        let pool = pool();
        let take = |usage| take(&pool, 1, 125, usage).unwrap();
        let [busy, late, early] = [Usage::Busy, Usage::Idle, Usage::Idle].map(take);
        late.0.set_usage(Usage::Busy);
        late.0.set_usage(Usage::Idle);
        let _kept = take(Usage::Kept);

        let evicted = || {
            let tokens = [&busy.1, &early.1, &late.1];
            tokens.map(CancellationToken::is_cancelled)
        };
        let mut more = Vec::new();
        for expected in [[false, true, false], [false, true, true]] {
            more.push(take(Usage::Kept));
            assert_eq!(evicted(), expected);
        }
        let token = CancellationToken::new();
        assert!(
            pool.take(1, 125, Usage::Idle, token).is_none(),
            "all are busy"
        );
    }

    #[test]
    fn among_holders_of_as_much_the_one_that_is_idle_for_longest_gives_way() {
        let pool = pool();
        let tokens: Vec<_> = [2, 9, 1, 8]
            .map(|holder| take(&pool, holder, 250, Usage::Idle).unwrap())
            .into();
        tokens[0].0.set_usage(Usage::Idle);

        let _next = take(&pool, 5, 250, Usage::Idle).unwrap();

        let evicted: Vec<_> = tokens
            .iter()
            .map(|(_, token)| token.is_cancelled())
            .collect();
        assert_eq!(evicted, [false, true, false, false]);
    }

    #[test]
    fn an_idle_permit_is_evicted_for_a_holder_that_would_have_as_much() {
        let pool = pool();
        let (_busy, busy_evicted) = take(&pool, 1, 500, Usage::Busy).unwrap();
        let (_idle, idle_evicted) = take(&pool, 2, 500, Usage::Idle).unwrap();

        assert!(take(&pool, 3, 500, Usage::Idle).is_some());

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
            (state.total, state.holders.len(), state.permits.len()),
            (0, 0, 0)
        );
    }
}
