//! Scheduling: how the capacity of dispatchers is shared between webhooks and stores, so that a
//! slow or unreachable receiver delays only its own notifications.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{
    id::StoreId,
    named_enum::named_enum,
    notification::{Failure, Outcome},
};

named_enum! {
    /// How long the last attempt to a webhook's receiver took. In the database, it is null before the
    /// first attempt has ended.
    pub enum ReceiverHealth("receiver health", ", ") {
        /// The last attempt took less than a second, delivered or failed.
        Healthy = "healthy",
        /// The last attempt took a second or more, delivered or failed, or timed out; or none has
        /// ended yet.
        Slow = "slow",
    }
}

impl ReceiverHealth {
    /// The health of a stored name. One that this version does not know counts as slow.
    pub fn parse(name: Option<&str>) -> Self {
        let known = name.and_then(|name| name.parse().ok());
        known.unwrap_or(Self::Slow)
    }

    /// The health after an attempt of this duration.
    ///
    /// Only the time in flight counts: a response just before the timeout, or a status whose body
    /// never arrives, uses as much capacity as no response.
    pub fn after(outcome: &Outcome, duration: Duration) -> Self {
        // The timeout of a dispatcher may be shorter than the threshold.
        let timed_out = outcome.failure() == Some(Failure::Timeout);
        if timed_out || duration >= SLOW_THRESHOLD {
            Self::Slow
        } else {
            Self::Healthy
        }
    }
}

/// The duration from which a receiver is slow: its attempts use capacity for a noticeable time.
const SLOW_THRESHOLD: Duration = Duration::from_secs(1);

/// How long a dispatcher leases a notification: longer than an attempt of the default timeout with
/// its queueing and its outcome report.
pub const LEASE_DURATION: Duration = Duration::from_mins(1);

/// How long after its claim a notification counts towards the in-flight limit of a healthy webhook;
/// longer than an attempt of the default timeout. Afterwards it no longer counts, although its lease
/// has not expired: its dispatcher has probably died.
pub const IN_FLIGHT_WINDOW: Duration = Duration::from_secs(20);

const _: () = assert!(
    SLOW_THRESHOLD.as_secs() < IN_FLIGHT_WINDOW.as_secs()
        && IN_FLIGHT_WINDOW.as_secs() < LEASE_DURATION.as_secs()
);

/// The most notifications in flight to one healthy webhook. Claims count those of all cores,
/// pre-leasing counts those of one.
const MAX_IN_FLIGHT_PER_WEBHOOK: u32 = 32;

/// How many notifications the dispatchers of one core may have in flight from it.
#[derive(Clone, Copy, Debug)]
pub struct Capacity(pub u32);

impl Capacity {
    /// The in-flight limit of one proven webhook. That of a healthy one is an eighth of the capacity,
    /// up to a limit, so that receivers that fail at the same moment don't use all of it.
    pub fn per_webhook(self, health: ReceiverHealth) -> u32 {
        match health {
            ReceiverHealth::Healthy => (self.0 / 8).clamp(1, MAX_IN_FLIGHT_PER_WEBHOOK),
            ReceiverHealth::Slow => 1,
        }
    }

    /// The in-flight limit of all slow webhooks. Healthy ones may use all of the capacity: they free
    /// it within moments.
    pub fn for_slow(self) -> u32 {
        (self.0 / 4).max(1)
    }

    /// The in-flight limit of a store's slow webhooks: the other half is left for other stores.
    pub fn for_slow_of_store(self) -> u32 {
        (self.for_slow() / 2).max(1)
    }
}

/// The free capacity for one claim.
#[derive(Clone, Debug)]
pub struct ClaimBudget {
    /// The dispatchers' whole capacity at this core.
    pub capacity: Capacity,
    /// The free part of the capacity.
    pub free: u32,
    /// The part of `free` that slow webhooks may use.
    pub free_slow: u32,
    /// The in-flight limit of a store's slow webhooks.
    pub slow_per_store: u32,
    /// What the slow webhooks of each store have in flight.
    pub slow_by_store: HashMap<StoreId, u32>,
}

/// A webhook with due notifications.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub health: ReceiverHealth,
    /// Whether the webhook is proven.
    pub is_proven: bool,
    pub in_flight: u32,
    pub store_id: StoreId,
}

impl Candidate {
    /// The in-flight limit: one notification while the webhook is unproven.
    pub fn limit(&self, capacity: Capacity) -> u32 {
        if self.is_proven {
            capacity.per_webhook(self.health)
        } else {
            1
        }
    }
}

impl ClaimBudget {
    /// The stores whose slow webhooks may have nothing more in flight.
    pub fn stores_at_limit(&self) -> impl Iterator<Item = StoreId> {
        let by_store = self.slow_by_store.iter();
        by_store
            .filter(|(_, in_flight)| **in_flight >= self.slow_per_store)
            .map(|(store_id, _)| *store_id)
    }

    /// How many notifications of each webhook to claim, in the order given. Every webhook gets an
    /// equal share first; what remains goes to the webhooks that can use more, in order.
    pub fn share(&self, webhooks: &[Candidate]) -> Vec<u32> {
        let count = u32::try_from(webhooks.len()).unwrap_or(u32::MAX).max(1);
        let (mut free, mut free_slow) = (self.free, self.free_slow);
        let mut slow_by_store = self.slow_by_store.clone();
        let mut shares = vec![0; webhooks.len()];
        for limit in [(self.free / count).max(1), u32::MAX] {
            for (share, webhook) in shares.iter_mut().zip(webhooks) {
                let of_webhook = webhook
                    .limit(self.capacity)
                    .saturating_sub(webhook.in_flight.saturating_add(*share));
                let mut more = of_webhook.min(limit).min(free);
                if webhook.health == ReceiverHealth::Slow {
                    let of_store = slow_by_store.entry(webhook.store_id).or_default();
                    let left = self.slow_per_store.saturating_sub(*of_store);
                    more = more.min(free_slow).min(left);
                    free_slow -= more;
                    *of_store += more;
                }
                *share += more;
                free -= more;
            }
        }
        shares
    }
}

/// How long all attempts of a proven webhook, whose receiver has accepted a notification, may fail before it is unproven
/// again: its host name may have been moved to the address of a server that never accepted one.
const PROOF_LIMIT: SignedDuration = SignedDuration::from_mins(1);

/// The pause in seconds of a host after each failed attempt of unproven webhooks, which a store calls at a limited rate
/// however many it has there: none after the first three. The last one is repeated.
pub const PAUSES: [i64; 9] = [0, 0, 0, 3, 6, 12, 24, 48, 60];

/// How much longer a pause is for webhooks with failed attempts, so that the first notification of
/// another webhook comes before theirs.
pub const PAUSE_EXTENSION: SignedDuration = SignedDuration::from_secs(2);

/// How long the failures of a host are stored after the last one.
pub const FAILURE_RETENTION: SignedDuration = SignedDuration::from_hours(1);

/// A webhook that fails at `now` is unproven from then on if all its attempts have failed since
/// this instant or an earlier one.
pub fn proof_lost_since(now: Timestamp) -> Timestamp {
    now.saturating_sub(PROOF_LIMIT).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests;
