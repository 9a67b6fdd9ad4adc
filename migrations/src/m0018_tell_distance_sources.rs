//! Who said how far a delivery is: it is charged by that distance.

use sea_orm_migration::prelude::*;

use crate::columns::text;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // Of deliveries until now it was not kept: they count as estimated.
        let column = text("distance_source").default("straight_line").take();
        manager
            .alter_table(Table::alter().table("deliveries").add_column(column).take())
            .await
    }
}
