//! Zones: what all of them were, version by version.

use sea_orm_migration::prelude::*;

use crate::columns::{instant, integer, table, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "zone_sets",
                [
                    integer("version"),
                    text("definition"),
                    instant("created_at"),
                ],
                &["version"],
            ))
            .await
    }
}
