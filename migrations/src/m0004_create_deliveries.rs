//! Deliveries and their tasks.

use sea_orm_migration::prelude::*;

use crate::columns::{
    flag, id, index, instant, integer, json, optional_id, optional_instant, optional_integer,
    optional_text, table, text,
};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "deliveries",
                [
                    id("store_id"),
                    id("id"),
                    integer("meters"),
                    integer("seconds"),
                    optional_integer("price_net"),
                    optional_integer("price_tax"),
                    optional_text("price_currency"),
                    // The place it took in a slot of limited capacity.
                    optional_id("booked_time_slot_id"),
                    optional_instant("booked_after"),
                    optional_instant("booked_before"),
                    instant("created_at"),
                    optional_instant("cancelled_at"),
                ],
                &["store_id", "id"],
            ))
            .await?;
        // Lists go by it, newest first.
        manager
            .create_index(index(
                "deliveries_by_creation",
                "deliveries",
                &["store_id", "created_at", "id"],
            ))
            .await?;
        manager
            .create_table(table(
                "tasks",
                [
                    id("store_id"),
                    id("id"),
                    id("delivery_id"),
                    text("kind"),
                    json("address"),
                    instant("after"),
                    instant("before"),
                    flag("time_slot"),
                    text("comments"),
                    optional_integer("weight"),
                    json("packages"),
                    json("tags"),
                    json("metadata"),
                    instant("created_at"),
                    instant("updated_at"),
                    optional_instant("completed_at"),
                    optional_instant("cancelled_at"),
                ],
                &["store_id", "id"],
            ))
            .await?;
        manager
            .create_index(index(
                "tasks_by_delivery",
                "tasks",
                &["store_id", "delivery_id"],
            ))
            .await?;
        // The platform's own programs name a task without knowing its store.
        manager
            .create_index(index("tasks_by_id", "tasks", &["id"]))
            .await
    }
}
