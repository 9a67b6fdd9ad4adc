//! Rows of `retail_price_uses`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "retail_price_uses")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) retail_price_id: Uuid,
    pub(crate) delivery_id: Uuid,
    pub(crate) used_at: Instant,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
