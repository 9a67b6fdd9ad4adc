//! Whose turn it is: a webhook's place in the queue, and how its receiver has answered.

use sea_orm_migration::prelude::*;

use crate::columns::{index, optional_instant};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // SQLite adds one column a statement.
        for column in [
            // Not later than what is pending is due, nor than the last turn; null when nothing
            // is pending.
            optional_instant("next_due_at"),
            // How the last attempt ended; null before the first.
            ColumnDef::new("timed_out").boolean().null().take(),
            // The first failure since the last success.
            optional_instant("failing_since"),
        ] {
            let mut change = Table::alter();
            change.table("webhooks").add_column(column);
            manager.alter_table(change).await?;
        }
        // What a core of the version before has left pending.
        manager
            .get_connection()
            .execute_unprepared(
                "UPDATE webhooks SET next_due_at = (SELECT MIN(due_at) FROM notifications \
                 WHERE notifications.store_id = webhooks.store_id \
                 AND notifications.webhook_id = webhooks.id AND state = 'pending')",
            )
            .await?;

        // Of the many notifications kept, few are owed: the first three hold no others.
        let mut waiting = index("webhooks_by_next_due", "webhooks", &["next_due_at"]);
        waiting.and_where(Expr::cust("next_due_at IS NOT NULL"));
        manager.create_index(waiting).await?;
        let mut pending = index(
            "notifications_pending",
            "notifications",
            &["store_id", "webhook_id", "due_at"],
        );
        pending.and_where(Expr::cust("state = 'pending'"));
        manager.create_index(pending).await?;
        let mut leased = index(
            "notifications_leased",
            "notifications",
            &["store_id", "webhook_id", "leased_until"],
        );
        leased.and_where(Expr::cust("state = 'leased'"));
        manager.create_index(leased).await?;
        // Those that have ended are removed by it.
        let mut finished = index("notifications_finished", "notifications", &["finished_at"]);
        finished.and_where(Expr::cust("finished_at IS NOT NULL"));
        manager.create_index(finished).await?;
        let mut by_due = Index::drop();
        by_due.name("notifications_by_due").table("notifications");
        manager.drop_index(by_due).await
    }
}
