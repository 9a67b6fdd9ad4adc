//! Time slots, stored as the operator's TOML.

use domain::id::{StoreId, TimeSlotId};

use super::entity::time_slot::{ActiveModel, Column, Entity, Model};
use crate::prelude::*;

/// A store's time slot.
#[derive(Clone, Debug)]
pub struct StoredTimeSlot {
    pub store_id: StoreId,
    pub id: TimeSlotId,
    pub display_name: String,
    /// The rules of the time slot, as TOML.
    pub definition: String,
    pub updated_at: Timestamp,
}

/// The default time slot of a store: its oldest.
pub async fn find_default(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<Option<StoredTimeSlot>, Error> {
    rows::first(connection, of_store(store_id)).await
}

/// A time slot of this store.
pub async fn find(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
    id: TimeSlotId,
) -> Result<Option<StoredTimeSlot>, Error> {
    rows::first(connection, Entity::find_by_id((store_id.0, id.0))).await
}

/// A store's time slots, oldest first.
pub async fn list(
    connection: &impl ConnectionTrait,
    store_id: StoreId,
) -> Result<Vec<StoredTimeSlot>, Error> {
    rows::all(connection, of_store(store_id)).await
}

fn of_store(store_id: StoreId) -> Select<Entity> {
    let query = Entity::find().filter(Column::StoreId.eq(store_id.0));
    query.order_by_asc(Column::Id)
}

pub async fn save(
    connection: &impl ConnectionTrait,
    time_slot: &StoredTimeSlot,
) -> Result<(), Error> {
    let row = ActiveModel {
        store_id: Set(time_slot.store_id.0),
        id: Set(time_slot.id.0),
        display_name: Set(time_slot.display_name.clone()),
        definition: Set(time_slot.definition.clone()),
        updated_at: Set(time_slot.updated_at.into()),
    };
    let replace = OnConflict::columns([Column::StoreId, Column::Id])
        .update_columns([Column::DisplayName, Column::Definition, Column::UpdatedAt])
        .to_owned();
    Entity::insert(row)
        .on_conflict(replace)
        .exec_without_returning(connection)
        .await?;
    Ok(())
}

impl TryFrom<Model> for StoredTimeSlot {
    type Error = Error;

    fn try_from(row: Model) -> Result<Self, Self::Error> {
        Ok(Self {
            store_id: StoreId(row.store_id),
            id: TimeSlotId(row.id),
            display_name: row.display_name,
            definition: row.definition,
            updated_at: row.updated_at.try_into()?,
        })
    }
}
