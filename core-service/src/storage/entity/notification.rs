//! Rows of `notifications`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "notifications")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) event_id: Uuid,
    pub(crate) webhook_id: Uuid,
    pub(crate) event: String,
    pub(crate) delivery_id: Uuid,
    pub(crate) state: String,
    pub(crate) attempts: i64,
    /// How many attempts had ended when the schedule began anew.
    pub(crate) restarted_after: i64,
    pub(crate) due_at: Instant,
    pub(crate) lease_token: Option<Uuid>,
    pub(crate) leased_until: Option<Instant>,
    pub(crate) created_at: Instant,
    pub(crate) finished_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
