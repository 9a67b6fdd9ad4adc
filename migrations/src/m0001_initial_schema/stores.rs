//! Stores, their time slots with bookings, and their price lists.

use sea_orm_migration::prelude::*;

use crate::columns::{id, instant, integer, optional_json, table, text};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "stores",
            [
                id("id"),
                text("display_name"),
                text("time_zone"),
                text("currency"),
                text("country"),
                optional_json("default_address"),
                // Null: the store delivers anywhere.
                optional_json("service_area"),
                instant("created_at"),
            ],
            &["id"],
        ),
        table(
            "time_slots",
            [
                id("store_id"),
                id("id"),
                text("display_name"),
                text("definition"),
                instant("updated_at"),
            ],
            &["store_id", "id"],
        ),
        // The number of bookings of each choice of a time slot with a limited capacity.
        table(
            "slot_bookings",
            [
                id("store_id"),
                id("time_slot_id"),
                instant("starts_at"),
                instant("ends_at"),
                integer("booked"),
            ],
            &["store_id", "time_slot_id", "starts_at", "ends_at"],
        ),
        table(
            "price_lists",
            [
                id("store_id"),
                integer("version"),
                text("definition"),
                instant("created_at"),
            ],
            &["store_id", "version"],
        ),
    ]
}
