//! Rows of `api_clients`.

use sea_orm::entity::prelude::*;

use super::{instant::Instant, json::AddressJson};

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "api_clients")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub store_id: Option<Uuid>,
    pub display_name: String,
    pub api_key: String,
    pub secret_hash: Vec<u8>,
    pub previous_secret_hash: Option<Vec<u8>>,
    pub previous_secret_expires_at: Option<Instant>,
    pub scopes: String,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub default_address: Option<AddressJson>,
    pub created_at: Instant,
    pub disabled_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
