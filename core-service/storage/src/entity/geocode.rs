//! Rows of `geocodes`.

use sea_orm::entity::prelude::*;
use serde::{Deserialize, Serialize};

use super::instant::Instant;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "geocodes")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub key: Vec<u8>,
    /// None: it was not found.
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub answer: Option<PlaceJson>,
    pub expires_at: Instant,
}

/// A place, exact enough to deliver to.
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
