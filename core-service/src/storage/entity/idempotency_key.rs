//! Rows of `idempotency_keys`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "idempotency_keys")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) api_client_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) key_hash: Vec<u8>,
    pub(crate) request_hash: Vec<u8>,
    pub(crate) sealed_answer: Vec<u8>,
    pub(crate) created_at: Instant,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
