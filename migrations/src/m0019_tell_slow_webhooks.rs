//! Calls how a receiver has answered by what it goes by: how long the last attempt took.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // No release has known the column by its first name.
        let mut rename = Table::alter();
        rename
            .table("webhooks")
            .rename_column("timed_out", "was_slow");
        manager.alter_table(rename).await
    }
}
