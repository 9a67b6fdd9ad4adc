//! Numbers events, for each store and for the platform, and lets their object be anything.

use sea_orm_migration::prelude::*;

use crate::columns::{id, index, instant, integer, optional_id, optional_integer, table, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // No release has known the column by its first name.
        let mut rename = Table::alter();
        rename
            .table("events")
            .rename_column("delivery_id", "object_id");
        manager.alter_table(rename).await?;
        // SQLite adds one column a statement.
        for column in [
            text("object_collection").default("deliveries").take(),
            // As `number`, over all stores.
            optional_integer("position"),
        ] {
            let mut change = Table::alter();
            change.table("events").add_column(column);
            manager.alter_table(change).await?;
        }

        // Unique, so that whatever else goes wrong no number is given twice.
        for index in [
            index("events_by_number", "events", &["store_id", "number"]),
            index("events_by_position", "events", &["position"]),
        ] {
            manager.create_index(index.clone().unique().take()).await?;
        }
        let mut unnumbered = index("events_unnumbered", "events", &["created_at", "id"]);
        unnumbered.and_where(Expr::cust("number IS NULL"));
        manager.create_index(unnumbered).await?;

        manager
            .create_table(table(
                "event_counters",
                [
                    id("store_id"),
                    integer("last_number"),
                    // The newest number that is kept no more; 0 while all are.
                    integer("trimmed_to"),
                ],
                &["store_id"],
            ))
            .await?;
        // One row: whoever holds it numbers events.
        manager
            .create_table(table(
                "event_sequencers",
                [
                    integer("id"),
                    optional_id("holder"),
                    // By the database's clock.
                    instant("held_until"),
                    integer("last_position"),
                    integer("trimmed_to"),
                ],
                &["id"],
            ))
            .await?;
        manager
            .get_connection()
            .execute_unprepared(
                "INSERT INTO event_sequencers (id, held_until, last_position, trimmed_to) \
                 VALUES (1, 0, 0, 0)",
            )
            .await?;
        Ok(())
    }
}
