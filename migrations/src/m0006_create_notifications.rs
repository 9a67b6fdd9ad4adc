//! Events, the notifications owed for them, and the attempts made.

use sea_orm_migration::prelude::*;

use crate::columns::{
    id, index, instant, integer, optional_instant, optional_integer, optional_text, table, text,
};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "events",
                [
                    id("store_id"),
                    id("id"),
                    text("name"),
                    id("delivery_id"),
                    instant("created_at"),
                    // Given by the sequencer, after the commit; readers see numbered events only.
                    optional_integer("number"),
                ],
                &["store_id", "id"],
            ))
            .await?;
        manager
            .create_table(table(
                "notifications",
                [
                    id("store_id"),
                    id("id"),
                    id("event_id"),
                    id("webhook_id"),
                    text("event"),
                    id("delivery_id"),
                    text("state"),
                    integer("attempts"),
                    instant("due_at"),
                    ColumnDef::new("lease_token").uuid().null().take(),
                    optional_instant("leased_until"),
                    instant("created_at"),
                    optional_instant("finished_at"),
                ],
                &["store_id", "id"],
            ))
            .await?;
        manager
            .create_table(table(
                "attempts",
                [
                    id("store_id"),
                    id("notification_id"),
                    integer("number"),
                    optional_text("failure"),
                    optional_integer("status"),
                    integer("duration"),
                    text("answer"),
                    instant("recorded_at"),
                ],
                &["store_id", "notification_id", "number"],
            ))
            .await?;
        manager
            .create_index(index(
                "notifications_by_due",
                "notifications",
                &["state", "due_at"],
            ))
            .await?;
        manager
            .create_index(index("notifications_by_id", "notifications", &["id"]))
            .await?;
        manager
            .create_index(index(
                "notifications_by_webhook",
                "notifications",
                &["store_id", "webhook_id", "state"],
            ))
            .await
    }
}
