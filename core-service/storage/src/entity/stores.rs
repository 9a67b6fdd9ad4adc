//! Rows of stores, and of their time slots and price lists.

/// Rows of `stores`.
pub(crate) mod store {
    use sea_orm::entity::prelude::*;

    use super::super::{
        instant::Instant,
        json::{AddressJson, ServiceAreaJson},
    };

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "stores")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub display_name: String,
        pub time_zone: String,
        pub currency: String,
        pub country: String,
        #[sea_orm(column_type = "JsonBinary", nullable)]
        pub default_address: Option<AddressJson>,
        pub created_at: Instant,
        #[sea_orm(column_type = "JsonBinary", nullable)]
        pub service_area: Option<ServiceAreaJson>,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `time_slots`.
pub(crate) mod time_slot {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "time_slots")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub id: Uuid,
        pub display_name: String,
        pub definition: String,
        pub updated_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `price_lists`.
pub(crate) mod price_list {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "price_lists")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub store_id: Uuid,
        #[sea_orm(primary_key, auto_increment = false)]
        pub version: i64,
        pub definition: String,
        pub created_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
