//! Rows of `tasks`.

use sea_orm::entity::prelude::*;

use super::{
    instant::Instant,
    json::{AddressJson, MetadataJson, PackagesJson, TagsJson},
};

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "tasks")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub delivery_id: Uuid,
    pub kind: String,
    #[sea_orm(column_type = "JsonBinary")]
    pub address: AddressJson,
    pub after: Instant,
    pub before: Instant,
    pub time_slot: bool,
    pub comments: String,
    pub weight: Option<i64>,
    #[sea_orm(column_type = "JsonBinary")]
    pub packages: PackagesJson,
    #[sea_orm(column_type = "JsonBinary")]
    pub tags: TagsJson,
    #[sea_orm(column_type = "JsonBinary")]
    pub metadata: MetadataJson,
    pub created_at: Instant,
    pub updated_at: Instant,
    pub completed_at: Option<Instant>,
    pub cancelled_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
