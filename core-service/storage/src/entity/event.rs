//! Rows of `events`.

use sea_orm::entity::prelude::*;

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "events")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub store_id: Uuid,
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Uuid,
    pub name: String,
    pub object_collection: String,
    pub object_id: Uuid,
    pub created_at: Instant,
    /// Given by the sequencer, after the commit: the event's place among its store's.
    pub number: Option<i64>,
    /// Given with `number`: its place among all stores'.
    pub position: Option<i64>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
