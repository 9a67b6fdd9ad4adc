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
    pub(crate) object_collection: String,
    pub(crate) object_id: Uuid,
    pub(crate) created_at: Instant,
    /// Given by the sequencer, after the commit: the event's place among its store's.
    pub(crate) number: Option<i64>,
    /// Given with `number`: its place among all stores'.
    pub(crate) position: Option<i64>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
