//! Shares the memory for request bodies among the peers that send them. A peer never gets more than
//! half of it. When it is exhausted, the peer that holds most gives memory to one that would hold
//! less: the largest body that it is still sending is rejected.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::error::Error;

/// The memory for the bodies of all requests in flight.
pub(crate) struct BodyMemory {
    /// In bytes.
    budget: usize,
    bodies: Mutex<Bodies>,
}

#[derive(Default)]
struct Bodies {
    next_id: u64,
    by_id: HashMap<u64, Body>,
    /// In bytes, like `total`.
    by_peer: HashMap<IpAddr, usize>,
    total: usize,
}

struct Body {
    peer: IpAddr,
    bytes: usize,
    is_arriving: bool,
    evicted: CancellationToken,
}

/// The memory of one body; given back when dropped.
pub(crate) struct Reservation {
    memory: Arc<BodyMemory>,
    id: u64,
    /// Cancelled when the memory was given to another peer.
    pub(crate) evicted: CancellationToken,
}

impl BodyMemory {
    pub(crate) fn new(budget: usize) -> Arc<Self> {
        Arc::new(Self {
            budget,
            bodies: Mutex::default(),
        })
    }

    /// A reservation for a body of which nothing has arrived yet.
    pub(crate) fn reserve_for(self: &Arc<Self>, peer: IpAddr) -> Reservation {
        let evicted = CancellationToken::new();
        let mut bodies = self.bodies.lock();
        let id = bodies.next_id;
        bodies.next_id += 1;
        let body = Body {
            peer,
            bytes: 0,
            is_arriving: true,
            evicted: evicted.clone(),
        };
        bodies.by_id.insert(id, body);
        Reservation {
            memory: Arc::clone(self),
            id,
            evicted,
        }
    }
}

impl Reservation {
    /// Extends the reservation to this size, in bytes. Fails if its peer may not have as much.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Error> {
        let budget = self.memory.budget;
        let mut bodies = self.memory.bodies.lock();
        let body = bodies.by_id.get(&self.id).ok_or_else(Error::overloaded)?;
        let (peer, more) = (body.peer, bytes.saturating_sub(body.bytes));
        let of_peer = bodies.held_by(peer).saturating_add(more);
        if of_peer > budget / 2 {
            return Err(Error::overloaded());
        }
        while bodies.total + more > budget {
            let candidate = bodies.eviction_candidate();
            let candidate = candidate.filter(|(_, held)| *held > of_peer);
            let (id, _) = candidate.ok_or_else(Error::overloaded)?;
            bodies.remove(id);
        }
        bodies.total += more;
        bodies.by_peer.insert(peer, of_peer);
        if let Some(body) = bodies.by_id.get_mut(&self.id) {
            body.bytes += more;
        }
        Ok(())
    }

    /// Keeps the memory until the reservation is dropped: the whole body has arrived.
    pub(crate) fn complete(&mut self) {
        if let Some(body) = self.memory.bodies.lock().by_id.get_mut(&self.id) {
            body.is_arriving = false;
        }
    }
}

impl Bodies {
    fn held_by(&self, peer: IpAddr) -> usize {
        self.by_peer.get(&peer).copied().unwrap_or_default()
    }

    /// Of all peers with an arriving body, the one that holds most: the id of its largest arriving
    /// body, and the bytes that the peer holds.
    fn eviction_candidate(&self) -> Option<(u64, usize)> {
        self.by_id
            .iter()
            .filter(|(_, body)| body.is_arriving && body.bytes > 0)
            .map(|(id, body)| (self.held_by(body.peer), body.bytes, *id))
            .max()
            .map(|(held, _, id)| (id, held))
    }

    fn remove(&mut self, id: u64) {
        let Some(body) = self.by_id.remove(&id) else {
            return;
        };
        body.evicted.cancel();
        self.total -= body.bytes;
        let held = self.held_by(body.peer) - body.bytes;
        if held == 0 {
            self.by_peer.remove(&body.peer);
        } else {
            self.by_peer.insert(body.peer, held);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.bodies.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const BUDGET: usize = 1000;

    fn peer(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    /// A reservation that takes all it can get, and its size.
    fn take_all(memory: &Arc<BodyMemory>, number: u32) -> (Reservation, usize) {
        let mut reservation = memory.reserve_for(peer(number));
        let mut bytes = 0;
        while reservation.grow_to(bytes + 1).is_ok() {
            bytes += 1;
        }
        (reservation, bytes)
    }

    #[test]
    fn a_peer_gets_at_most_half_over_all_its_requests() {
        let memory = BodyMemory::new(BUDGET);

        let first = take_all(&memory, 1);
        let second = take_all(&memory, 1);

        assert_eq!((first.1, second.1), (500, 0));
    }

    #[test]
    fn any_number_of_greedy_peers_leaves_a_share_to_the_next() {
        let memory = BodyMemory::new(BUDGET);
        let greedy: Vec<_> = (1..=200)
            .map(|number| take_all(&memory, number).0)
            .collect();

        let mut next = memory.reserve_for(peer(201));

        assert!(next.grow_to(BUDGET / 201).is_ok());
        assert!(greedy.iter().any(|body| body.evicted.is_cancelled()));
        assert!(memory.bodies.lock().total <= BUDGET);
    }

    #[test]
    fn a_body_is_evicted_only_for_a_peer_that_needs_less() {
        let memory = BodyMemory::new(BUDGET);
        let [mut large, mut small, mut other, mut next] =
            [1, 1, 2, 3].map(|number| memory.reserve_for(peer(number)));
        large.grow_to(300).unwrap();
        small.grow_to(200).unwrap();
        other.grow_to(500).unwrap();
        other.complete();

        assert!(next.grow_to(500).is_err());
        assert!(!large.evicted.is_cancelled() && !small.evicted.is_cancelled());
        assert!(next.grow_to(300).is_ok());

        assert!(large.evicted.is_cancelled());
        assert!(!small.evicted.is_cancelled() && !other.evicted.is_cancelled());
        assert!(large.grow_to(301).is_err());
    }

    #[test]
    fn a_dropped_reservation_is_available_again() {
        let memory = BodyMemory::new(BUDGET);
        for _ in 0..3 {
            assert_eq!(take_all(&memory, 1).1, 500);
        }

        let bodies = memory.bodies.lock();
        assert_eq!((bodies.total, bodies.by_peer.len()), (0, 0));
        assert!(bodies.by_id.is_empty());
    }
}
