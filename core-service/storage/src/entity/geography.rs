//! Rows of zones and of the geocode cache.

/// Rows of `zone_sets`.
pub(crate) mod zone_set {
    use sea_orm::entity::prelude::*;

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "zone_sets")]
    pub struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub version: i64,
        pub definition: String,
        pub created_at: Instant,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}

/// Rows of `geocodes`.
pub(crate) mod geocode {
    use sea_orm::entity::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::super::instant::Instant;

    #[derive(Clone, Debug, DeriveEntityModel)]
    #[sea_orm(table_name = "geocodes")]
    pub(crate) struct Model {
        #[sea_orm(primary_key, auto_increment = false)]
        pub key: Vec<u8>,
        /// `None`: the address was not found.
        #[sea_orm(column_type = "JsonBinary", nullable)]
        pub place: Option<PlaceJson>,
        pub expires_at: Instant,
    }

    /// A place that is precise enough to deliver to.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, sea_orm::FromJsonQueryResult)]
    pub struct PlaceJson {
        pub formatted: String,
        pub postal_code: Option<String>,
        pub locality: Option<String>,
        pub country: Option<String>,
        pub latitude: f64,
        pub longitude: f64,
        /// `house`, `interpolated`, `street` or `locality`.
        pub precision: String,
        pub confidence: f64,
    }

    #[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
    pub(crate) enum Relation {}

    impl ActiveModelBehavior for ActiveModel {}
}
