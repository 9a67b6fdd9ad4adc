//! Rows of `webhooks`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "webhooks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub api_client_id: Uuid,
    pub event: String,
    pub url: String,
    pub sealed_secret: Vec<u8>,
    /// Each behind its length in two bytes, oldest first.
    pub sealed_retired_secrets: Option<Vec<u8>>,
    pub overlap_ends_at: Option<Instant>,
    pub created_at: Instant,
    pub disabled_at: Option<Instant>,
    pub disabled_reason: Option<String>,
    pub missed_from: Option<Instant>,
    pub missed_until: Option<Instant>,
    /// See `notifications::queue`.
    pub next_due_at: Option<Instant>,
    pub was_slow: Option<bool>,
    pub failing_since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
