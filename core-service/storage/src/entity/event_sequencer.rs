//! The one row of `event_sequencers`: who numbers events, and how far they are numbered and kept
//! over all stores.

use sea_orm::entity::prelude::*;

/// The row's key.
pub(crate) const ONLY: i64 = 1;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "event_sequencers")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub holder: Option<Uuid>,
    /// Microseconds since 1970, by the database's clock.
    pub held_until: i64,
    pub last_position: i64,
    /// The newest position that is kept no more; 0 while all are.
    pub trimmed_to: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
