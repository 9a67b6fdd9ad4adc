//! Stores, their time slots and price lists.

use sea_orm_migration::prelude::*;

use crate::columns::{id, index, instant, integer, optional_json, table, text};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .create_table(table(
                "stores",
                [
                    id("id"),
                    text("display_name"),
                    text("time_zone"),
                    text("currency"),
                    text("country"),
                    optional_json("default_address"),
                    instant("created_at"),
                ],
                &["id"],
            ))
            .await?;
        manager
            .create_table(table(
                "time_slots",
                [
                    id("store_id"),
                    id("id"),
                    text("display_name"),
                    text("definition"),
                    instant("updated_at"),
                ],
                &["store_id", "id"],
            ))
            .await?;
        // How many deliveries took a place in a slot of limited capacity.
        manager
            .create_table(table(
                "slot_bookings",
                [
                    id("store_id"),
                    id("time_slot_id"),
                    instant("starts_at"),
                    instant("ends_at"),
                    integer("booked"),
                ],
                &["store_id", "time_slot_id", "starts_at", "ends_at"],
            ))
            .await?;
        manager
            .create_table(table(
                "price_lists",
                [
                    id("store_id"),
                    integer("version"),
                    text("definition"),
                    instant("created_at"),
                ],
                &["store_id", "version"],
            ))
            .await?;
        manager
            .create_index(index("time_slots_by_id", "time_slots", &["id"]))
            .await
    }
}
