//! Deliveries, their tasks, the quotes they used, and the bytes that stores created.

use sea_orm_migration::prelude::*;

use crate::columns::{
    flag, id, index, instant, integer, json, optional_id, optional_instant, optional_integer,
    optional_text, partial_index, table, text,
};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "deliveries",
            [
                id("store_id"),
                id("id"),
                // The store's own identifier of the delivery.
                optional_text("external_reference"),
                integer("distance_meters"),
                integer("duration_seconds"),
                // The price depends on the distance, so its source is stored with it.
                text("distance_source"),
                optional_integer("price_net"),
                optional_integer("price_tax"),
                optional_text("price_currency"),
                // The name of the quote that set the price.
                optional_text("retail_price"),
                // The booked slot, if its capacity is limited.
                optional_id("booked_time_slot_id"),
                optional_instant("booked_after"),
                optional_instant("booked_before"),
                // Copies of the tasks' values, for filters of lists.
                optional_instant("dropoff_before"),
                optional_instant("completed_at"),
                instant("created_at"),
                optional_instant("cancelled_at"),
                // When its personal data was erased.
                optional_instant("erased_at"),
            ],
            &["store_id", "id"],
        ),
        // The bytes that a store created in each hour of the last day.
        table(
            "created_bytes",
            [
                id("store_id"),
                integer("hour_of_day"),
                // The beginning of the hour.
                instant("hour"),
                integer("bytes"),
            ],
            &["store_id", "hour_of_day"],
        ),
        table(
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
        ),
        // The delivery that used each quote: one at most.
        table(
            "retail_price_uses",
            [
                id("store_id"),
                id("retail_price_id"),
                id("delivery_id"),
                instant("used_at"),
            ],
            &["store_id", "retail_price_id"],
        ),
    ]
}

/// Lists are ordered by creation, newest first. The partial indexes contain only the rows that a
/// filter selects, so that a page of few rows does not scan many others.
pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    let by_creation = &["store_id", "created_at", "id"];
    vec![
        index("deliveries_by_creation", "deliveries", by_creation),
        partial_index(
            "deliveries_to_do",
            "deliveries",
            by_creation,
            "completed_at IS NULL",
        ),
        partial_index(
            "deliveries_cancelled",
            "deliveries",
            by_creation,
            "cancelled_at IS NOT NULL",
        ),
        partial_index(
            "deliveries_by_external_reference",
            "deliveries",
            &["store_id", "external_reference"],
            "external_reference IS NOT NULL",
        )
        .unique()
        .take(),
        index(
            "deliveries_by_dropoff",
            "deliveries",
            &["store_id", "dropoff_before"],
        ),
        // For retention.
        partial_index(
            "deliveries_not_erased",
            "deliveries",
            &["dropoff_before"],
            "erased_at IS NULL",
        ),
        index("tasks_by_delivery", "tasks", &["store_id", "delivery_id"]),
        // The platform's own programs address a task without its store.
        index("tasks_by_id", "tasks", &["id"]),
    ]
}
