//! Rows of `deliveries`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "deliveries")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) meters: i64,
    pub(crate) seconds: i64,
    pub(crate) distance_source: String,
    pub(crate) price_net: Option<i64>,
    pub(crate) price_tax: Option<i64>,
    pub(crate) price_currency: Option<String>,
    pub(crate) retail_price: Option<String>,
    pub(crate) booked_time_slot_id: Option<Uuid>,
    pub(crate) booked_after: Option<Instant>,
    pub(crate) booked_before: Option<Instant>,
    pub(crate) created_at: Instant,
    pub(crate) cancelled_at: Option<Instant>,
    pub(crate) external_reference: Option<String>,
    /// Copies of what the tasks say, for lists alone.
    pub(crate) dropoff_before: Option<Instant>,
    pub(crate) completed_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
