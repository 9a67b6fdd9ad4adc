//! What a webhook's secret replaces, and why a webhook is disabled.

use sea_orm_migration::prelude::*;

use crate::columns::{index, optional_bytes, optional_instant, optional_text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite adds one column a statement.
        for column in [
            // Each sealed, behind its length in two bytes; oldest first.
            optional_bytes("sealed_retired_secrets"),
            optional_instant("overlap_ends_at"),
            optional_text("disabled_reason"),
        ] {
            let mut change = Table::alter();
            change.table("webhooks").add_column(column);
            manager.alter_table(change).await?;
        }
        // Operators name a webhook without knowing its store.
        manager
            .create_index(index("webhooks_by_id", "webhooks", &["id"]))
            .await
    }
}
