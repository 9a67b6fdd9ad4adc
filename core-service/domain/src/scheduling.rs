//! Scheduling: how the capacity of dispatchers is shared between webhooks and stores, so that a
//! slow or unreachable receiver delays only its own notifications.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{
    id::{StoreId, WebhookId},
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

/// Whether the receiver of an attempt may get more at a time.
pub fn is_answered_well(outcome: &Outcome, duration: Duration) -> bool {
    *outcome == Outcome::Delivered && duration < SLOW_THRESHOLD
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

/// The most notifications in flight to one healthy webhook at first. Claims count those of all cores,
/// pre-leasing counts those of one.
const MAX_IN_FLIGHT_AT_FIRST: u32 = 32;

/// The most to one whose receiver has answered well.
const MAX_IN_FLIGHT_GROWN: u32 = 256;

/// The part of a webhook's limit that it uses at least while the limit grows: several cores may share its notifications.
const USED_WHILE_GROWING: u32 = 4;

/// How many notifications the dispatchers of one core may have in flight from it.
#[derive(Clone, Copy, Debug)]
pub struct Capacity(pub u32);

impl Capacity {
    /// The in-flight limit of one proven webhook, before it grows. That of a healthy one is an eighth of the
    /// capacity, up to a limit, so that receivers that fail at the same moment don't use all of it.
    pub fn per_webhook(self, health: ReceiverHealth) -> u32 {
        match health {
            ReceiverHealth::Healthy => (self.0 / 8).clamp(1, MAX_IN_FLIGHT_AT_FIRST),
            ReceiverHealth::Slow => 1,
        }
    }

    /// What all webhooks together may have in flight beyond their limits at first: the other half is left for
    /// receivers within theirs.
    pub fn for_grown(self) -> u32 {
        self.0 / 2
    }

    /// The limit of a healthy webhook after an attempt that was one of so many in flight: one more if it was answered well,
    /// half otherwise, and never below that at first.
    pub fn grown(self, limit: u32, in_flight: u32, is_answered_well: bool) -> u32 {
        let at_first = self.per_webhook(ReceiverHealth::Healthy);
        let limit = limit.max(at_first);
        let next = if !is_answered_well {
            limit / 2
        } else if in_flight >= limit.div_ceil(USED_WHILE_GROWING) {
            limit + 1
        } else {
            limit
        };
        let most = MAX_IN_FLIGHT_GROWN.min(at_first + self.for_grown());
        next.clamp(at_first, most.max(at_first))
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
    /// The part of `free` that healthy webhooks may use beyond their limits at first.
    pub free_grown: u32,
    /// The limits of healthy webhooks that have grown.
    pub grown: HashMap<WebhookId, u32>,
}

/// A webhook with due notifications.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub health: ReceiverHealth,
    /// Whether the webhook is proven.
    pub is_proven: bool,
    pub in_flight: u32,
    pub store_id: StoreId,
    pub webhook_id: WebhookId,
}

impl Candidate {
    /// The in-flight limit at first: one notification while the webhook is unproven.
    fn limit_at_first(&self, capacity: Capacity) -> u32 {
        if self.is_proven {
            capacity.per_webhook(self.health)
        } else {
            1
        }
    }
}

impl ClaimBudget {
    /// The in-flight limit of a webhook.
    pub fn limit(&self, webhook: &Candidate) -> u32 {
        let at_first = webhook.limit_at_first(self.capacity);
        if !webhook.is_proven || webhook.health == ReceiverHealth::Slow {
            return at_first;
        }
        let grown = self.grown.get(&webhook.webhook_id);
        grown.copied().unwrap_or(at_first).max(at_first)
    }

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
        let (mut free, mut free_slow, mut free_grown) =
            (self.free, self.free_slow, self.free_grown);
        let mut slow_by_store = self.slow_by_store.clone();
        let mut shares = vec![0; webhooks.len()];
        for limit in [(self.free / count).max(1), u32::MAX] {
            for (share, webhook) in shares.iter_mut().zip(webhooks) {
                let in_flight = webhook.in_flight.saturating_add(*share);
                let at_first = webhook.limit_at_first(self.capacity);
                let at_first = at_first.saturating_sub(in_flight);
                let of_webhook = self.limit(webhook).saturating_sub(in_flight);
                let of_webhook = of_webhook.min(at_first.saturating_add(free_grown));
                let mut more = of_webhook.min(limit).min(free);
                free_grown -= more.saturating_sub(at_first);
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
