//! Rows of events, and of the bounds and the sequencer of the log.

/// Rows of `events`.
pub(crate) mod event {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

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
        /// The sequence number within the store. Assigned by the sequencer after the commit.
        pub number: Option<i64>,
        /// The sequence number over all stores, assigned with `number`.
        pub position: Option<i64>,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `event_counters`: the bounds of each store's log.
pub(crate) mod event_counter {
    use sea_orm::entity::prelude::*;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "event_counters")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        pub last_number: i64,
        /// The newest number that retention has removed; 0 if none.
        pub retained_after: i64,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// The only row of `event_sequencers`: the lease of the sequencer, and the bounds of the log over
/// all stores.
pub(crate) mod event_sequencer {
    use sea_orm::entity::prelude::*;

    /// The key of the only row.
    pub(crate) const ROW_ID: i64 = 1;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "event_sequencers")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: i64,
        pub lease_owner: Option<Uuid>,
        /// Microseconds since 1970, by the database's clock.
        pub lease_expires_at: i64,
        pub last_position: i64,
        /// The newest position that retention has removed; 0 if none.
        pub retained_after: i64,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
