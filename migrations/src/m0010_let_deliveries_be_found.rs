//! What deliveries are found by: the store's own reference, the dropoff's time, and how far they
//! have come. The last two are copies of what their tasks say.

use sea_orm_migration::prelude::*;

use crate::columns::{index, optional_instant, optional_text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

/// Each holds only the rows it is asked for, so that a page of a few among many is short to read.
const PARTIAL_INDEXES: [&str; 3] = [
    "CREATE UNIQUE INDEX deliveries_by_external_reference
     ON deliveries (store_id, external_reference) WHERE external_reference IS NOT NULL",
    "CREATE INDEX deliveries_to_do
     ON deliveries (store_id, created_at, id) WHERE completed_at IS NULL",
    "CREATE INDEX deliveries_cancelled
     ON deliveries (store_id, created_at, id) WHERE cancelled_at IS NOT NULL",
];

const COPY: &str = r#"UPDATE deliveries SET
    dropoff_before = (
        SELECT tasks."before" FROM tasks
        WHERE tasks.store_id = deliveries.store_id AND tasks.delivery_id = deliveries.id
            AND tasks.kind = 'dropoff'
    ),
    completed_at = (
        SELECT CASE WHEN COUNT(tasks.completed_at) = 2 THEN MAX(tasks.completed_at) END FROM tasks
        WHERE tasks.store_id = deliveries.store_id AND tasks.delivery_id = deliveries.id
    )"#;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for column in [
            optional_text("external_reference"),
            optional_instant("dropoff_before"),
            optional_instant("completed_at"),
        ] {
            let table = Table::alter().table("deliveries").add_column(column).take();
            manager.alter_table(table).await?;
        }
        let connection = manager.get_connection();
        connection.execute_unprepared(COPY).await?;
        for statement in PARTIAL_INDEXES {
            connection.execute_unprepared(statement).await?;
        }
        manager
            .create_index(index(
                "deliveries_by_dropoff",
                "deliveries",
                &["store_id", "dropoff_before"],
            ))
            .await
    }
}
