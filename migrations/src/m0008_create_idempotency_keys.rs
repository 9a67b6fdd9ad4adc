//! Answers kept for requests that may come again.

use sea_orm_migration::prelude::*;

use crate::columns::{bytes, id, index, instant, table};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "idempotency_keys",
                [
                    id("store_id"),
                    id("api_client_id"),
                    // Of the client's key and what it is for.
                    bytes("key_hash"),
                    bytes("request_hash"),
                    bytes("sealed_answer"),
                    instant("created_at"),
                ],
                &["store_id", "api_client_id", "key_hash"],
            ))
            .await?;
        // The oldest are removed first.
        manager
            .create_index(index(
                "idempotency_keys_by_creation",
                "idempotency_keys",
                &["created_at"],
            ))
            .await
    }
}
