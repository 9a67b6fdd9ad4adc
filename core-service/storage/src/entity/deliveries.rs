//! Rows of deliveries and their tasks, of bookings, uses of quotes, and created bytes.

/// Rows of `deliveries`.
pub(crate) mod delivery {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "deliveries")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub distance_meters: i64,
        pub duration_seconds: i64,
        pub distance_source: String,
        pub price_net: Option<i64>,
        pub price_tax: Option<i64>,
        pub price_currency: Option<String>,
        /// The name of the quote that sets the price.
        pub retail_price: Option<String>,
        pub booked_time_slot_id: Option<Uuid>,
        pub booked_after: Option<Instant>,
        pub booked_before: Option<Instant>,
        pub created_at: Instant,
        pub cancelled_at: Option<Instant>,
        pub external_reference: Option<String>,
        /// Copied from the tasks for the filters of lists, as is `completed_at`.
        pub dropoff_before: Option<Instant>,
        pub completed_at: Option<Instant>,
        /// When its personal data was erased.
        pub erased_at: Option<Instant>,
    }

    positional!(
        store_id,
        id,
        distance_meters,
        duration_seconds,
        distance_source,
        price_net,
        price_tax,
        price_currency,
        retail_price,
        booked_time_slot_id,
        booked_after,
        booked_before,
        created_at,
        cancelled_at,
        external_reference,
        dropoff_before,
        completed_at,
        erased_at,
    );

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `tasks`.
pub(crate) mod task {
    use sea_orm::entity::prelude::*;

    use super::super::{
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
        /// Whether the window was requested as a time slot.
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

    positional!(
        store_id,
        id,
        delivery_id,
        kind,
        address,
        after,
        before,
        time_slot,
        comments,
        weight,
        packages,
        tags,
        metadata,
        created_at,
        updated_at,
        completed_at,
        cancelled_at,
    );

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `slot_bookings`.
pub(crate) mod slot_booking {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "slot_bookings")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub time_slot_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub starts_at: Instant,
        #[sea_orm(primary_key, auto_increment = false)]
        pub ends_at: Instant,
        pub booked: i64,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `created_bytes`.
pub(crate) mod created_bytes {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "created_bytes")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub hour_of_day: i64,
        pub hour: Instant,
        pub bytes: i64,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `retail_price_uses`.
pub(crate) mod retail_price_use {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "retail_price_uses")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub retail_price_id: Uuid,
        pub delivery_id: Uuid,
        pub used_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
