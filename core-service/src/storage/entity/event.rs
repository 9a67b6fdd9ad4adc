//! Rows of `events`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "events")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) delivery_id: Uuid,
    pub(crate) created_at: Instant,
    pub(crate) number: Option<i64>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
