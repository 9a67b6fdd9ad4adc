//! Scheduling: how the capacity of a dispatcher is shared between webhooks, stores and hosts, so
//! that a slow or unreachable receiver delays only its own notifications.

use std::{collections::HashMap, time::Duration};

use super::{
    id::StoreId,
    notification::{Failure, Outcome},
};

/// How long the last attempt to a webhook's receiver took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiverHealth {
    /// No attempt has ended yet.
    Unknown,
    /// The last attempt took less than a second, delivered or failed.
    Healthy,
    /// The last attempt took at least 1 second and less than 5, delivered or failed.
    Lagging,
    /// The last attempt took 5 seconds or more, delivered or failed, or timed out.
    Slow,
}

impl ReceiverHealth {
    pub const ALL: [Self; 4] = [Self::Unknown, Self::Healthy, Self::Lagging, Self::Slow];

    /// The name in the database; `None` before the first attempt has ended.
    pub const fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Healthy => Some("healthy"),
            Self::Lagging => Some("lagging"),
            Self::Slow => Some("slow"),
        }
    }

    /// The health of a stored name. One that this version does not know counts as the slowest.
    pub fn parse(name: Option<&str>) -> Self {
        Self::ALL
            .into_iter()
            .find(|health| health.as_str() == name)
            .unwrap_or(Self::Slow)
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
        } else if duration >= LAGGING_THRESHOLD {
            Self::Lagging
        } else {
            Self::Healthy
        }
    }
}

/// The duration from which a receiver is lagging: its attempts use capacity for a noticeable time.
const LAGGING_THRESHOLD: Duration = Duration::from_secs(1);

/// The duration from which a receiver is slow: a third of the default timeout.
const SLOW_THRESHOLD: Duration = Duration::from_secs(5);

/// How long a dispatcher leases a notification: longer than an attempt of the default timeout with
/// its queueing and its outcome report.
pub const LEASE_DURATION: Duration = Duration::from_mins(1);

/// How long after its claim a notification counts towards the in-flight limit of a healthy webhook;
/// longer than an attempt of the default timeout. Afterwards it no longer counts, although its lease
/// has not expired: its dispatcher has probably died.
pub const IN_FLIGHT_WINDOW: Duration = Duration::from_secs(20);

const _: () = assert!(
    LAGGING_THRESHOLD.as_secs() < SLOW_THRESHOLD.as_secs()
        && SLOW_THRESHOLD.as_secs() < IN_FLIGHT_WINDOW.as_secs()
        && IN_FLIGHT_WINDOW.as_secs() < LEASE_DURATION.as_secs()
);

/// The most notifications in flight to one healthy webhook. Claims count those of all dispatchers,
/// pre-leasing counts those of one stream.
const MAX_IN_FLIGHT_PER_WEBHOOK: u32 = 32;

/// The most notifications in flight to one lagging webhook.
const MAX_IN_FLIGHT_WHILE_LAGGING: u32 = 8;

/// How many notifications one dispatcher may have in flight from one core.
#[derive(Clone, Copy, Debug)]
pub struct Capacity(pub u32);

impl Capacity {
    /// The in-flight limit of one proven webhook: one until its first attempt has ended, then an
    /// eighth of the capacity, up to a limit, so that receivers that fail at the same moment don't
    /// use all of it. The longer a receiver takes, the lower the limit.
    pub fn per_webhook(self, health: ReceiverHealth) -> u32 {
        match health {
            ReceiverHealth::Healthy => (self.0 / 8).clamp(1, MAX_IN_FLIGHT_PER_WEBHOOK),
            ReceiverHealth::Lagging => (self.0 / 32).clamp(1, MAX_IN_FLIGHT_WHILE_LAGGING),
            ReceiverHealth::Unknown | ReceiverHealth::Slow => 1,
        }
    }

    /// The in-flight limit of all webhooks of one health. A quarter of the capacity is reserved
    /// for healthy webhooks, which never queue behind slower ones.
    pub fn per_health(self, health: ReceiverHealth) -> u32 {
        match health {
            ReceiverHealth::Healthy => self.0,
            ReceiverHealth::Unknown | ReceiverHealth::Lagging | ReceiverHealth::Slow => {
                (self.0 / 4).max(1)
            }
        }
    }
}

/// Notifications in flight by health.
pub type ByHealth = [u32; ReceiverHealth::ALL.len()];

/// A store or a host that shares the capacity for receivers that are not healthy. Each may use half
/// of the share for each health, so that the other half is left for others. Healthy receivers are
/// not limited: they free their capacity within moments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UsageKey {
    Store(StoreId),
    /// The host and port of receivers, which may be those of many stores.
    Host(String),
}

/// What each store and each host has in flight on one stream.
#[derive(Clone, Debug, Default)]
pub struct Usage(HashMap<UsageKey, ByHealth>);

impl Usage {
    pub fn add(&mut self, key: UsageKey, health: ReceiverHealth) {
        self.add_several(key, health, 1);
    }

    fn add_several(&mut self, key: UsageKey, health: ReceiverHealth, count: u32) {
        self.0.entry(key).or_default()[health as usize] += count;
    }

    pub fn remove(&mut self, key: &UsageKey, health: ReceiverHealth) {
        let Some(used) = self.0.get_mut(key) else {
            return;
        };
        used[health as usize] = used[health as usize].saturating_sub(1);
        if *used == ByHealth::default() {
            self.0.remove(key);
        }
    }

    /// How many more notifications to receivers of a health a store or a host may have in flight.
    pub fn remaining(&self, capacity: Capacity, key: &UsageKey, health: ReceiverHealth) -> u32 {
        if health == ReceiverHealth::Healthy {
            return u32::MAX;
        }
        let used = self.0.get(key).map_or(0, |used| used[health as usize]);
        let limit = (capacity.per_health(health) / 2).max(1);
        limit.saturating_sub(used)
    }
}

/// The free capacity for one claim.
#[derive(Clone, Debug)]
pub struct ClaimBudget {
    /// The dispatcher's whole capacity at this core.
    pub capacity: Capacity,
    /// The free part of the capacity.
    pub free: u32,
    /// The part of `free` that webhooks of each health may use.
    pub free_by_health: ByHealth,
    pub usage: Usage,
    /// Capacity reserved for concurrent claims. They may use all of it for one store or host, so
    /// each has that much less.
    pub reserved: u32,
}

/// A webhook with due notifications.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub health: ReceiverHealth,
    /// Whether the webhook is proven.
    pub is_proven: bool,
    pub in_flight: u32,
    pub store_id: StoreId,
    pub host: &'a str,
}

impl Candidate<'_> {
    /// The in-flight limit: one notification while the webhook is unproven.
    pub fn limit(&self, capacity: Capacity) -> u32 {
        if self.is_proven {
            capacity.per_webhook(self.health)
        } else {
            1
        }
    }

    fn usage_keys(&self) -> [UsageKey; 2] {
        [
            UsageKey::Store(self.store_id),
            UsageKey::Host(self.host.to_owned()),
        ]
    }
}

impl ClaimBudget {
    /// The stores and hosts that may have nothing more in flight to receivers of a health.
    pub fn keys_at_limit(&self, health: ReceiverHealth) -> impl Iterator<Item = &UsageKey> {
        let keys = self.usage.0.keys();
        keys.filter(move |key| self.remaining(&self.usage, key, health) == 0)
    }

    /// Whether a store or a host with nothing in flight may have a notification to a receiver of a
    /// health.
    pub fn admits_new_key(&self, health: ReceiverHealth) -> bool {
        let key = UsageKey::Host(String::new());
        self.remaining(&Usage::default(), &key, health) > 0
    }

    fn remaining(&self, usage: &Usage, key: &UsageKey, health: ReceiverHealth) -> u32 {
        usage
            .remaining(self.capacity, key, health)
            .saturating_sub(self.reserved)
    }

    /// How many notifications of each webhook to claim, in the order given. Every webhook gets an
    /// equal share first; what remains goes to the webhooks that can use more, in order.
    pub fn share(&self, webhooks: &[Candidate<'_>]) -> Vec<u32> {
        let count = u32::try_from(webhooks.len()).unwrap_or(u32::MAX).max(1);
        let mut free = self.free;
        let mut free_by_health = self.free_by_health;
        let mut usage = self.usage.clone();
        let mut shares = vec![0; webhooks.len()];
        for limit in [(self.free / count).max(1), u32::MAX] {
            for (share, webhook) in shares.iter_mut().zip(webhooks) {
                let of_health = &mut free_by_health[webhook.health as usize];
                let of_webhook = webhook
                    .limit(self.capacity)
                    .saturating_sub(webhook.in_flight.saturating_add(*share));
                let more = of_webhook.min(limit).min(free).min(*of_health);
                let more = webhook.usage_keys().iter().fold(more, |more, key| {
                    more.min(self.remaining(&usage, key, webhook.health))
                });
                if more == 0 {
                    continue;
                }
                *share += more;
                free -= more;
                *of_health -= more;
                for key in webhook.usage_keys() {
                    usage.add_several(key, webhook.health, more);
                }
            }
        }
        shares
    }
}

#[cfg(test)]
mod tests;
