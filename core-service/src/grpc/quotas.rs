//! The quota of deliveries that a store creates in 24 hours.

use std::time::Duration;

use domain::id::StoreId;
use jiff::{SignedDuration, Timestamp};
use storage::ConnectionTrait;

use crate::error::Error;

const PERIOD: SignedDuration = SignedDuration::from_hours(24);

/// How many deliveries a store may create in 24 hours.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryQuota(pub(super) Option<u32>);

impl DeliveryQuota {
    /// Fails if a store has used up its quota.
    pub(super) async fn check(
        self,
        connection: &impl ConnectionTrait,
        store_id: StoreId,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Some(quota) = self.0 else { return Ok(()) };
        let Ok(since) = now.checked_sub(PERIOD) else {
            return Ok(());
        };
        // The quota is free again once the oldest of as many deliveries is out of the period.
        let newest = quota.saturating_sub(1);
        let oldest =
            storage::deliveries::nth_newest_creation_time(connection, store_id, newest, since)
                .await?;
        let Some(oldest) = oldest else { return Ok(()) };
        let retry_after = Duration::try_from(oldest.duration_since(since));
        Err(Error::DeliveryQuota {
            quota,
            retry_after: retry_after.unwrap_or_default(),
        })
    }
}
