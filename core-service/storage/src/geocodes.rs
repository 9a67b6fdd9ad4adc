//! The persistent cache of geocoding results: shared by all cores, with an expiry. Partial
//! results are not cached.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use geocoding::{CacheKey, GeocodeResult, PersistentCache};
use process::clock::Clock;

use super::{
    Storage,
    entity::{
        geocode::{ActiveModel, Column, Entity},
        instant::Instant,
        json::PlaceJson,
    },
};
use crate::prelude::*;

/// The [`PersistentCache`] in the database.
#[derive(Clone)]
pub struct GeocodeCache {
    pub storage: Arc<Storage>,
    pub clock: Clock,
}

impl PersistentCache for GeocodeCache {
    fn get(&self, key: CacheKey) -> BoxFuture<'_, Option<(GeocodeResult, Duration)>> {
        async move {
            let found = find(self.storage.reader(), key, self.clock.now()).await;
            found.unwrap_or_else(|error| {
                tracing::warn!(%error, "a cached geocode cannot be read");
                None
            })
        }
        .boxed()
    }

    fn put(
        &self,
        key: CacheKey,
        result: GeocodeResult,
        time_to_live: Duration,
    ) -> BoxFuture<'_, ()> {
        async move {
            let place = match result {
                GeocodeResult::Found(found) => Some(PlaceJson(found)),
                GeocodeResult::NotFound => None,
                GeocodeResult::Partial(_) => return,
            };
            let now = self.clock.now();
            let expires_at = now.checked_add(time_to_live).unwrap_or(now);
            let stored = self
                .storage
                .write(move |transaction| async move {
                    delete_expired(&transaction, now).await?;
                    insert(&transaction, key, place, expires_at).await
                })
                .await;
            if let Err(error) = stored {
                tracing::warn!(%error, "a geocode cannot be cached");
            }
        }
        .boxed()
    }
}

async fn find(
    connection: &impl ConnectionTrait,
    key: CacheKey,
    now: Timestamp,
) -> Result<Option<(GeocodeResult, Duration)>, Error> {
    let row = Entity::find_by_id(key.to_vec())
        .filter(Column::ExpiresAt.gt(Instant::from(now)))
        .one(connection)
        .await?;
    row.map(|row| {
        let result = row.place.map_or(GeocodeResult::NotFound, |place| {
            GeocodeResult::Found(place.0)
        });
        let expires_at = Timestamp::try_from(row.expires_at)?;
        let time_to_live = expires_at.duration_since(now).unsigned_abs();
        Ok((result, time_to_live))
    })
    .transpose()
}

async fn insert(
    transaction: &impl ConnectionTrait,
    key: CacheKey,
    place: Option<PlaceJson>,
    expires_at: Timestamp,
) -> Result<(), Error> {
    let row = ActiveModel {
        key: Set(key.to_vec()),
        place: Set(place),
        expires_at: Set(expires_at.into()),
    };
    let replace = OnConflict::column(Column::Key)
        .update_columns([Column::Place, Column::ExpiresAt])
        .to_owned();
    Entity::insert(row)
        .on_conflict(replace)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

async fn delete_expired(transaction: &impl ConnectionTrait, now: Timestamp) -> Result<(), Error> {
    let delete = "DELETE FROM geocodes WHERE expires_at <= $1";
    rows::run(transaction, delete, [Instant::from(now).into()]).await
}

#[cfg(test)]
mod tests {
    use domain::address::LatLng;
    use geocoding::{GeocodeMatch, Precision};
    use jiff::SignedDuration;

    use super::*;
    use crate::fixture;

    #[tokio::test]
    async fn a_result_is_cached_until_it_expires() {
        let (_directory, storage) = fixture::sqlite().await;
        let clock = Clock::manual(Timestamp::from_second(1_000_000).unwrap());
        let cache = GeocodeCache {
            storage,
            clock: clock.clone(),
        };
        let found = GeocodeResult::Found(GeocodeMatch {
            formatted: "24 Rue de la Paix, 75002 Paris".to_owned(),
            postal_code: Some("75002".to_owned()),
            locality: Some("Paris".to_owned()),
            country: Some("FR".to_owned()),
            lat_lng: LatLng::new(48.87, 2.3314).unwrap(),
            precision: Precision::House,
            confidence: 0.9,
            is_in_nearest_town: false,
            reasons: Vec::new(),
        });
        let minute = Duration::from_mins(1);
        let get = async |key| cache.get([key; 32]).await;

        cache.put([1; 32], found.clone(), minute).await;
        cache.put([2; 32], GeocodeResult::NotFound, minute).await;
        assert_eq!(get(1).await, Some((found.clone(), minute)));
        assert_eq!(get(2).await, Some((GeocodeResult::NotFound, minute)));
        assert_eq!(get(3).await, None);

        clock.advance(SignedDuration::from_secs(59));
        assert_eq!(get(1).await, Some((found.clone(), Duration::from_secs(1))));
        clock.advance(SignedDuration::from_secs(1));
        assert_eq!(get(1).await, None);
        cache.put([2; 32], found.clone(), minute).await;
        assert_eq!(get(2).await, Some((found, minute)));
        let rows = Entity::find().all(cache.storage.reader()).await.unwrap();
        assert_eq!(rows.len(), 1);
    }
}
