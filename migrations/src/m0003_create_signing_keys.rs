//! The keys that sign access tokens.

use sea_orm_migration::prelude::*;

use crate::columns::{bytes, instant, table, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "signing_keys",
                [
                    text("id"),
                    bytes("sealed_private_key"),
                    instant("created_at"),
                ],
                &["id"],
            ))
            .await
    }
}
