//! `notifications.traceparent`: connects a notification to the trace of the call that caused its event.

use sea_orm_migration::prelude::*;

use crate::columns::optional_text;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut add = Table::alter();
        add.table("notifications")
            .add_column(optional_text("traceparent"));
        manager.alter_table(add).await
    }
}
