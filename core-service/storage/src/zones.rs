//! Zones: each version is one row with all of them.

use domain::zone::Zones;

use super::entity::zone_set::{ActiveModel, Column, Entity, Model};
use crate::{error::is_unique_violation, prelude::*};

/// The zones of a version.
#[derive(Clone, Debug)]
pub struct StoredZones {
    /// Counts from 1.
    pub version: i64,
    pub zones: Zones,
    pub created_at: Timestamp,
}

/// The last version; `None` if there never was a zone.
pub async fn find_current(connection: &impl ConnectionTrait) -> Result<Option<StoredZones>, Error> {
    rows::first(connection, Entity::find().order_by_desc(Column::Version)).await
}

/// The last version's number; `None` if there never was a zone.
pub async fn current_version(connection: &impl ConnectionTrait) -> Result<Option<i64>, Error> {
    rows::value(connection, "SELECT MAX(version) FROM zone_sets").await
}

/// Adds a version. If two transactions add the same one, the later is a conflict and runs again.
pub async fn insert(connection: &impl ConnectionTrait, stored: &StoredZones) -> Result<(), Error> {
    let row = ActiveModel {
        version: Set(stored.version),
        definition: Set(stored.zones.to_geo_json()),
        created_at: Set(stored.created_at.into()),
    };
    let inserted = rows::insert(connection, row).await;
    inserted.map_err(|error| match error {
        Error::Database(cause) if is_unique_violation(&cause) => Error::SerializationFailure(cause),
        error => error,
    })
}

impl TryFrom<Model> for StoredZones {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        let zones = Zones::parse(&row.definition)
            .map_err(|error| Error::inconsistent("zone_sets", error))?;
        Ok(Self {
            version: row.version,
            zones,
            created_at: row.created_at.try_into()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Storage, fixture};

    const ZONE: &str = r#"{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {"name": "Centre"}, "geometry": {"type": "Polygon", "coordinates": [[[2.3, 48.8], [2.4, 48.8], [2.4, 48.9], [2.3, 48.8]]]}}]}"#;

    async fn add(storage: &Storage, version: i64) -> Result<(), Error> {
        let added = storage.write(move |transaction| async move {
            let stored = StoredZones {
                version,
                zones: Zones::parse(ZONE).unwrap(),
                created_at: Timestamp::UNIX_EPOCH,
            };
            insert(&transaction, &stored).await
        });
        added.await
    }

    #[tokio::test]
    async fn the_current_version_is_the_last_one() {
        let (_directory, storage) = fixture::sqlite().await;
        for version in 1..=2 {
            let before = current_version(storage.reader()).await.unwrap();
            assert_eq!(before, Some(version - 1).filter(|version| *version > 0));
            add(&storage, version).await.unwrap();

            assert_eq!(
                current_version(storage.reader()).await.unwrap(),
                Some(version)
            );
            let current = find_current(storage.reader()).await.unwrap();
            assert_eq!(current.map(|current| current.version), Some(version));
        }
    }

    #[tokio::test]
    async fn a_version_that_another_transaction_has_added_is_a_conflict() {
        let (_directory, storage) = fixture::sqlite().await;
        add(&storage, 1).await.unwrap();

        let again = add(&storage, 1).await;

        assert!(matches!(again, Err(Error::SerializationFailure(_))));
    }
}
