//! Rows of `tasks`.

use sea_orm::entity::prelude::*;

use super::{
    instant::Instant,
    json::{AddressJson, MetadataJson, PackagesJson, TagsJson},
};

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "tasks")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) delivery_id: Uuid,
    pub(crate) kind: String,
    #[sea_orm(column_type = "JsonBinary")]
    pub(crate) address: AddressJson,
    pub(crate) after: Instant,
    pub(crate) before: Instant,
    pub(crate) time_slot: bool,
    pub(crate) comments: String,
    pub(crate) weight: Option<i64>,
    #[sea_orm(column_type = "JsonBinary")]
    pub(crate) packages: PackagesJson,
    #[sea_orm(column_type = "JsonBinary")]
    pub(crate) tags: TagsJson,
    #[sea_orm(column_type = "JsonBinary")]
    pub(crate) metadata: MetadataJson,
    pub(crate) created_at: Instant,
    pub(crate) updated_at: Instant,
    pub(crate) completed_at: Option<Instant>,
    pub(crate) cancelled_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
