//! Rows of `webhooks`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "webhooks")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) api_client_id: Uuid,
    pub(crate) event: String,
    pub(crate) url: String,
    pub(crate) sealed_secret: Vec<u8>,
    /// Each behind its length in two bytes, oldest first.
    pub(crate) sealed_retired_secrets: Option<Vec<u8>>,
    pub(crate) overlap_ends_at: Option<Instant>,
    pub(crate) created_at: Instant,
    pub(crate) disabled_at: Option<Instant>,
    pub(crate) disabled_reason: Option<String>,
    pub(crate) missed_from: Option<Instant>,
    pub(crate) missed_until: Option<Instant>,
    /// See `notifications::queue`.
    pub(crate) next_due_at: Option<Instant>,
    pub(crate) was_slow: Option<bool>,
    pub(crate) failing_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
