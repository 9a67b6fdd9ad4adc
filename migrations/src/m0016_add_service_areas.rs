//! Where a store delivers.

use sea_orm_migration::prelude::*;

use crate::columns::optional_json;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // None: anywhere.
        manager
            .alter_table(
                Table::alter()
                    .table("stores")
                    .add_column(optional_json("service_area"))
                    .take(),
            )
            .await
    }
}
