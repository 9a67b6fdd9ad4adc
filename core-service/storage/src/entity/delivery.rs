//! Rows of `deliveries`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "deliveries")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub meters: i64,
    pub seconds: i64,
    pub distance_source: String,
    pub price_net: Option<i64>,
    pub price_tax: Option<i64>,
    pub price_currency: Option<String>,
    pub retail_price: Option<String>,
    pub booked_time_slot_id: Option<Uuid>,
    pub booked_after: Option<Instant>,
    pub booked_before: Option<Instant>,
    pub created_at: Instant,
    pub cancelled_at: Option<Instant>,
    pub external_reference: Option<String>,
    /// Copies of what the tasks say, for lists alone.
    pub dropoff_before: Option<Instant>,
    pub completed_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
