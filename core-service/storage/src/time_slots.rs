//! Time slots, stored as the operator's TOML.

use domain::id::{StoreId, TimeSlotId};

use super::entity::{
    Instant,
    time_slot::{Column, Entity, Model},
};
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
    let save = "INSERT INTO time_slots (store_id, id, display_name, definition, updated_at)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (store_id, id) DO UPDATE SET display_name = excluded.display_name,
            definition = excluded.definition, updated_at = excluded.updated_at";
    let values = [
        time_slot.store_id.0.into(),
        time_slot.id.0.into(),
        time_slot.display_name.as_str().into(),
        time_slot.definition.as_str().into(),
        Instant::from(time_slot.updated_at).into(),
    ];
    rows::run(connection, save, values).await
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
