//! What a notification that is sent again begins after, and what a webhook missed while it was
//! disabled.

use sea_orm_migration::prelude::*;

use crate::columns::{index, integer, optional_instant};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // How many attempts had ended when the schedule began anew.
        let mut change = Table::alter();
        change
            .table("notifications")
            .add_column(integer("restarted_after").default(0).take());
        manager.alter_table(change).await?;
        // The time in which it was disabled, until what it missed then is owed to it.
        for column in [
            optional_instant("missed_from"),
            optional_instant("missed_until"),
        ] {
            let mut change = Table::alter();
            change.table("webhooks").add_column(column);
            manager.alter_table(change).await?;
        }
        // Lists go by it, newest first. It does what the index before it did, and does not move
        // with the state.
        manager
            .create_index(index(
                "notifications_by_creation",
                "notifications",
                &["store_id", "webhook_id", "created_at", "id"],
            ))
            .await?;
        let mut by_state = Index::drop();
        by_state
            .name("notifications_by_webhook")
            .table("notifications")
            .if_exists();
        manager.drop_index(by_state).await
    }
}
