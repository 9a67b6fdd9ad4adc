//! Rows of `stores`.

use sea_orm::entity::prelude::*;

use super::{
    instant::Instant,
    json::{AddressJson, ServiceAreaJson},
};

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "stores")]
pub(crate) struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub(crate) id: Uuid,
    pub(crate) display_name: String,
    pub(crate) time_zone: String,
    pub(crate) currency: String,
    pub(crate) country: String,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub(crate) default_address: Option<AddressJson>,
    pub(crate) created_at: Instant,
    #[sea_orm(column_type = "JsonBinary", nullable)]
    pub(crate) service_area: Option<ServiceAreaJson>,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub(crate) enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
