//! Rows of `api_clients`.

use sea_orm::entity::prelude::*;

use super::{instant::Instant, json::AddressJson};

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "api_clients")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) store_id: Option<Uuid>,
    pub(crate) display_name: String,
    pub(crate) api_key: String,
    pub(crate) secret_hash: Vec<u8>,
    pub(crate) previous_secret_hash: Option<Vec<u8>>,
    pub(crate) previous_secret_expires_at: Option<Instant>,
    pub(crate) scopes: String,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub(crate) default_address: Option<AddressJson>,
    pub(crate) created_at: Instant,
    pub(crate) disabled_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
