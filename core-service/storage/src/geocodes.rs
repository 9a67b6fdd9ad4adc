//! What geocoders elsewhere have answered, until it expires: shared by all cores, and still
//! there after a restart. What is only understood in part is not kept.

use std::{sync::Arc, time::Duration};

use domain::address::LatLng;
use futures_util::{FutureExt, future::BoxFuture};
use geocoding::{Answer, Found, Kept, Key, Precision};
use jiff::Timestamp;
use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, sea_query::OnConflict};

use super::{
    ConnectionTrait, Error, Storage,
    entity::{
        geocode::{ActiveModel, Column, Entity, PlaceJson},
        instant::Instant,
    },
};

use process::clock::Clock;

/// The table, for a cache.
pub struct KeptGeocodes {
    pub storage: Arc<Storage>,
    pub clock: Clock,
}

impl Kept for KeptGeocodes {
    fn find(&self, key: Key) -> BoxFuture<'_, Option<Answer>> {
        async move {
            let found = find(self.storage.reader(), key, self.clock.now()).await;
            found.unwrap_or_else(|error| {
                tracing::warn!(%error, "a kept answer of a geocoder cannot be read");
                None
            })
        }
        .boxed()
    }

    fn keep(&self, key: Key, answer: Answer, lifetime: Duration) -> BoxFuture<'_, ()> {
        async move {
            let place = match answer {
                Answer::Found(found) => Some(PlaceJson::from(found)),
                Answer::NotFound => None,
                Answer::Unclear(_) => return,
            };
            let now = self.clock.now();
            let expires_at = now.checked_add(lifetime).unwrap_or(now);
            let kept = self
                .storage
                .write(move |transaction| {
                    let place = place.clone();
                    Box::pin(async move {
                        delete_expired(transaction, now).await?;
                        keep(transaction, key, place, expires_at).await
                    })
                })
                .await;
            if let Err(error) = kept {
                tracing::warn!(%error, "an answer of a geocoder cannot be kept");
            }
        }
        .boxed()
    }
}

async fn find(
    connection: &impl ConnectionTrait,
    key: Key,
    now: Timestamp,
) -> Result<Option<Answer>, Error> {
    let row = Entity::find_by_id(key.to_vec())
        .filter(Column::ExpiresAt.gt(Instant::from(now)))
        .one(connection)
        .await?;
    row.map(|row| match row.answer {
        Some(place) => place.try_into().map(Answer::Found),
        None => Ok(Answer::NotFound),
    })
    .transpose()
}

async fn keep(
    transaction: &impl ConnectionTrait,
    key: Key,
    place: Option<PlaceJson>,
    expires_at: Timestamp,
) -> Result<(), Error> {
    let row = ActiveModel {
        key: Set(key.to_vec()),
        answer: Set(place),
        expires_at: Set(expires_at.into()),
    };
    let newer = OnConflict::column(Column::Key)
        .update_columns([Column::Answer, Column::ExpiresAt])
        .to_owned();
    Entity::insert(row)
        .on_conflict(newer)
        .exec_without_returning(transaction)
        .await?;
    Ok(())
}

async fn delete_expired(transaction: &impl ConnectionTrait, now: Timestamp) -> Result<(), Error> {
    Entity::delete_many()
        .filter(Column::ExpiresAt.lte(Instant::from(now)))
        .exec(transaction)
        .await?;
    Ok(())
}

impl From<Found> for PlaceJson {
    fn from(found: Found) -> Self {
        Self {
            formatted: found.formatted,
            postal_code: found.postal_code,
            locality: found.locality,
            country: found.country,
            latitude: found.lat_lng.latitude(),
            longitude: found.lat_lng.longitude(),
            precision: found.precision.to_string(),
            confidence: found.confidence,
        }
    }
}

impl TryFrom<PlaceJson> for Found {
    type Error = Error;

    fn try_from(place: PlaceJson) -> Result<Self, Error> {
        let precisions = [
            Precision::House,
            Precision::Interpolated,
            Precision::Street,
            Precision::Locality,
        ];
        let precision = precisions
            .into_iter()
            .find(|precision| precision.to_string() == place.precision)
            .ok_or_else(|| Error::inconsistent("geocodes", &place.precision))?;
        let lat_lng = LatLng::new(place.latitude, place.longitude)
            .map_err(|error| Error::inconsistent("geocodes", &error))?;
        Ok(Self {
            formatted: place.formatted,
            postal_code: place.postal_code,
            locality: place.locality,
            country: place.country,
            lat_lng,
            precision,
            confidence: place.confidence,
            reasons: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::fixture;

    #[tokio::test]
    async fn an_answer_is_kept_until_it_expires() {
        let (_directory, storage) = fixture::sqlite().await;
        let clock = Clock::manual(Timestamp::from_second(1_000_000).unwrap());
        let kept = KeptGeocodes {
            storage,
            clock: clock.clone(),
        };
        let found = Answer::Found(Found {
            formatted: "24 Rue de la Paix, 75002 Paris".to_owned(),
            postal_code: Some("75002".to_owned()),
            locality: Some("Paris".to_owned()),
            country: Some("FR".to_owned()),
            lat_lng: LatLng::new(48.87, 2.3314).unwrap(),
            precision: Precision::House,
            confidence: 0.9,
            reasons: Vec::new(),
        });
        let minute = Duration::from_mins(1);

        kept.keep([1; 32], found.clone(), minute).await;
        kept.keep([2; 32], Answer::NotFound, minute).await;
        assert_eq!(kept.find([1; 32]).await, Some(found.clone()));
        assert_eq!(kept.find([2; 32]).await, Some(Answer::NotFound));
        assert_eq!(kept.find([3; 32]).await, None);

        clock.advance(SignedDuration::from_secs(60));
        assert_eq!(kept.find([1; 32]).await, None);
        kept.keep([2; 32], found.clone(), minute).await;
        assert_eq!(kept.find([2; 32]).await, Some(found));
        let rows = Entity::find().all(kept.storage.reader()).await.unwrap();
        assert_eq!(rows.len(), 1);
    }
}
