//! Webhooks: who is told of which event.

use sea_orm_migration::prelude::*;

use crate::columns::{bytes, id, index, instant, optional_instant, table, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "webhooks",
                [
                    id("store_id"),
                    id("id"),
                    id("api_client_id"),
                    text("event"),
                    text("url"),
                    bytes("sealed_secret"),
                    instant("created_at"),
                    optional_instant("disabled_at"),
                ],
                &["store_id", "id"],
            ))
            .await?;
        manager
            .create_index(index(
                "webhooks_by_event",
                "webhooks",
                &["store_id", "event"],
            ))
            .await
    }
}
