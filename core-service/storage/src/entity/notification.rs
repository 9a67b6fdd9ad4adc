//! Rows of `notifications`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "notifications")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub event_id: Uuid,
    pub webhook_id: Uuid,
    pub event: String,
    pub delivery_id: Uuid,
    pub state: String,
    pub attempts: i64,
    /// How many attempts had ended when the schedule began anew.
    pub restarted_after: i64,
    pub due_at: Instant,
    pub lease_token: Option<Uuid>,
    pub leased_until: Option<Instant>,
    pub created_at: Instant,
    pub finished_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
