//! Stores, their time slots with bookings, and their price lists.

use sea_orm_migration::{
    prelude::*,
    schema::{big_integer, json_binary_null, text, uuid},
};

use crate::columns::{instant, table};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "stores",
            [
                uuid("id"),
                text("display_name"),
                text("time_zone"),
                text("currency"),
                text("country"),
                json_binary_null("default_address"),
                // Null: the store delivers anywhere.
                json_binary_null("service_area"),
                instant("created_at"),
            ],
            &["id"],
        ),
        table(
            "time_slots",
            [
                uuid("store_id"),
                uuid("id"),
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
                uuid("store_id"),
                uuid("time_slot_id"),
                instant("starts_at"),
                instant("ends_at"),
                big_integer("booked"),
            ],
            &["store_id", "time_slot_id", "starts_at", "ends_at"],
        ),
        table(
            "price_lists",
            [
                uuid("store_id"),
                big_integer("version"),
                text("definition"),
                instant("created_at"),
            ],
            &["store_id", "version"],
        ),
    ]
}
