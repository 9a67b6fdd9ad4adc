//! Deliveries and their tasks.

use sea_orm_migration::prelude::*;

use crate::columns::{
    flag, id, index, instant, integer, json, optional_instant, optional_integer, optional_text,
    table, text,
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
                    instant("created_at"),
                    optional_instant("cancelled_at"),
                ],
                &["store_id", "id"],
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
