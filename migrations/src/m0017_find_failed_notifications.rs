//! Where what failed, was given up or dropped is found, however much was delivered.

use sea_orm_migration::prelude::*;

use crate::columns::index;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // In the order of lists. What is delivered at the first attempt is never in it.
        let mut failed = index(
            "notifications_failed",
            "notifications",
            &["store_id", "webhook_id", "created_at", "id"],
        );
        failed.and_where(Expr::cust(
            "state <> 'delivered' AND (attempts > 0 OR state = 'dropped')",
        ));
        manager.create_index(failed).await
    }
}
