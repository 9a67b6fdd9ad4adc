//! Rows of `geocodes`.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "geocodes")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) key: Vec<u8>,
    /// None: it was not found.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub(crate) answer: Option<PlaceJson>,
    pub(crate) expires_at: Instant,
}

/// A place, exact enough to deliver to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, sea_orm::FromJsonQueryResult)]
pub(crate) struct PlaceJson {
    pub(crate) formatted: String,
    pub(crate) postal_code: Option<String>,
    pub(crate) locality: Option<String>,
    pub(crate) country: Option<String>,
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
    /// `house`, `interpolated`, `street` or `locality`.
    pub(crate) precision: String,
    pub(crate) confidence: f64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
