//! Rows of `slot_bookings`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "slot_bookings")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub time_slot_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub starts_at: Instant,
    #[sea_orm(primary_key, auto_increment = false)]
    pub ends_at: Instant,
    pub booked: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
