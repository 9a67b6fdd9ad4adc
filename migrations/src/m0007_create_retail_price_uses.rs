//! Which delivery a promised price was used for: each once.

use sea_orm_migration::prelude::*;

use crate::columns::{id, instant, optional_text, table};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "retail_price_uses",
                [
                    id("store_id"),
                    id("retail_price_id"),
                    id("delivery_id"),
                    instant("used_at"),
                ],
                &["store_id", "retail_price_id"],
            ))
            .await?;
        // The name of the promise a delivery is charged by.
        manager
            .alter_table(
                Table::alter()
                    .table("deliveries")
                    .add_column(optional_text("retail_price"))
                    .take(),
            )
            .await
    }
}
