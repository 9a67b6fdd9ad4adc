//! The quotas of what a store creates in 24 hours: deliveries, and their bytes.

use std::time::Duration;

use domain::id::StoreId;
use jiff::{SignedDuration, Timestamp};
use storage::{
    ConnectionTrait,
    created_bytes::{self, CreatedInHour},
};

use crate::{config::DeliveryConfig, error::Error};

const PERIOD: SignedDuration = SignedDuration::from_hours(24);

/// What a store may create in 24 hours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliveryQuotas {
    deliveries: Option<u32>,
    bytes: Option<i64>,
}

impl DeliveryQuotas {
    /// `None` if the operator has set none.
    pub(crate) fn of(config: DeliveryConfig) -> Option<Self> {
        let deliveries = config.deliveries_per_day;
        let bytes = config
            .delivery_bytes_per_day
            .map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        (deliveries.is_some() || bytes.is_some()).then_some(Self { deliveries, bytes })
    }

    /// Fails if a store has used up a quota.
    pub(crate) async fn check(
        self,
        connection: &impl ConnectionTrait,
        store_id: StoreId,
        bytes: usize,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Ok(since) = now.checked_sub(PERIOD) else {
            return Ok(());
        };
        let hours = created_bytes::hours_after(connection, store_id, since).await?;
        let deliveries = self.deliveries.map(i64::from);
        let deliveries = deliveries.map(|quota| Quota {
            limit: quota,
            needed: 1,
            count: |hour| hour.deliveries,
            text: format!("{quota} deliveries"),
        });
        let bytes = self.bytes.map(|quota| Quota {
            limit: quota,
            needed: signed(bytes),
            count: |hour| hour.bytes,
            text: format!("deliveries of {quota} bytes"),
        });
        for quota in [deliveries, bytes].into_iter().flatten() {
            let counts: Vec<_> = hours
                .iter()
                .map(|hour| (hour.hour, (quota.count)(hour)))
                .collect();
            let limit = quota.limit.saturating_sub(quota.needed);
            if let Some(hour) = last_hour_to_leave(&counts, limit, now) {
                return Err(exceeded(quota.text, hour, since));
            }
        }
        Ok(())
    }
}

/// Counts a created delivery.
pub(crate) async fn count(
    transaction: &impl ConnectionTrait,
    store_id: StoreId,
    bytes: usize,
    now: Timestamp,
) -> Result<(), Error> {
    Ok(created_bytes::add(transaction, store_id, signed(bytes), now).await?)
}

/// One of the quotas.
struct Quota {
    limit: i64,
    /// What the delivery to be created takes of it.
    needed: i64,
    count: fn(&CreatedInHour) -> i64,
    /// For people.
    text: String,
}

/// The beginning of the newest hour that must be out of the period, so that the counts of the later
/// hours are at most `limit`. `None` if those of all hours are. `now` if `limit` is negative,
/// because the delivery alone exceeds the quota.
fn last_hour_to_leave(hours: &[(Timestamp, i64)], limit: i64, now: Timestamp) -> Option<Timestamp> {
    let mut total = hours
        .iter()
        .fold(0_i64, |total, (_, bytes)| total.saturating_add(*bytes));
    if total <= limit {
        return None;
    }
    let last = hours.iter().find(|(_, bytes)| {
        total = total.saturating_sub(*bytes);
        total <= limit
    });
    Some(last.map_or(now, |(hour, _)| *hour))
}

/// The error of a quota that is free again once `instant` is out of the period.
fn exceeded(quota: String, instant: Timestamp, since: Timestamp) -> Error {
    let retry_after = Duration::try_from(instant.duration_since(since));
    Error::DeliveryQuota {
        quota,
        retry_after: retry_after.unwrap_or_default(),
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_free_once_enough_hours_are_out_of_the_period() {
        let hour = |hour: i64| Timestamp::from_second(hour * 3600).unwrap();
        let hours = [(hour(1), 10), (hour(2), 20), (hour(5), 30)];
        for (limit, expected) in [
            (60, None),
            (59, Some(hour(1))),
            (50, Some(hour(1))),
            (49, Some(hour(2))),
            (0, Some(hour(5))),
            (-1, Some(hour(9))),
        ] {
            assert_eq!(
                last_hour_to_leave(&hours, limit, hour(9)),
                expected,
                "{limit}"
            );
        }
        assert_eq!(last_hour_to_leave(&[], -1, hour(9)), Some(hour(9)));
    }
}
