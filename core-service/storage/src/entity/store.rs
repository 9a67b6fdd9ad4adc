//! Rows of `stores`.

use sea_orm::entity::prelude::*;

use super::{
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
