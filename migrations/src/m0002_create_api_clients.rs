//! API clients: the OAuth applications.

use sea_orm_migration::prelude::*;

use crate::columns::{
    bytes, id, index, instant, optional_bytes, optional_id, optional_instant, optional_json, table,
    text,
};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "api_clients",
                [
                    id("id"),
                    // Null for the platform's own programs, which belong to no store.
                    optional_id("store_id"),
                    text("display_name"),
                    text("api_key"),
                    bytes("secret_hash"),
                    optional_bytes("previous_secret_hash"),
                    optional_instant("previous_secret_expires_at"),
                    text("scopes"),
                    optional_json("default_address"),
                    instant("created_at"),
                    optional_instant("disabled_at"),
                ],
                &["id"],
            ))
            .await?;
        manager
            .create_index(
                index("api_clients_by_api_key", "api_clients", &["api_key"])
                    .unique()
                    .take(),
            )
            .await
    }
}
