//! `notifications.traceparent`: connects a notification to the trace of the call that caused its event.

use sea_orm_migration::{prelude::*, schema::text_null, sea_orm::DbBackend};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        crate::IN_TRANSACTION
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        if manager.get_database_backend() == DbBackend::Postgres {
            // While this waits for its lock, as during a dump, all statements about the table wait for
            // it: those of running cores too.
            let statement = "SET LOCAL lock_timeout = '2s'";
            manager
                .get_connection()
                .execute_unprepared(statement)
                .await?;
        }
        let mut add = Table::alter();
        add.table("notifications")
            .add_column(text_null("traceparent"));
        manager.alter_table(add).await
    }
}
