//! Zones: each version is one row with all of them.

use domain::zone::Zones;

use super::entity::zone_set::{ActiveModel, Column, Entity, Model};
use crate::prelude::*;

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
    let version = Entity::find()
        .select_only()
        .column(Column::Version)
        .order_by_desc(Column::Version)
        .into_tuple()
        .one(connection)
        .await?;
    Ok(version)
}

/// Adds a version. If two transactions add the same version, one of them fails (primary key).
pub async fn insert(connection: &impl ConnectionTrait, stored: &StoredZones) -> Result<(), Error> {
    let row = ActiveModel {
        version: Set(stored.version),
        definition: Set(stored.zones.to_geo_json()),
        created_at: Set(stored.created_at.into()),
    };
    rows::insert(connection, row).await
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
