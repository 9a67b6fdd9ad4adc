//! Deliveries, their tasks, the quotes they used, and the bytes that stores created.

use sea_orm_migration::{
    prelude::*,
    schema::{
        big_integer, big_integer_null, boolean, json_binary, text, text_null, uuid, uuid_null,
    },
};

use crate::columns::{index, instant, optional_instant, partial_index, table};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "deliveries",
            [
                uuid("store_id"),
                uuid("id"),
                // The store's own identifier of the delivery.
                text_null("external_reference"),
                big_integer("distance_meters"),
                big_integer("duration_seconds"),
                // The price depends on the distance, so its source is stored with it.
                text("distance_source"),
                big_integer_null("price_net"),
                big_integer_null("price_tax"),
                text_null("price_currency"),
                // The name of the quote that set the price.
                text_null("retail_price"),
                // The booked slot, if its capacity is limited.
                uuid_null("booked_time_slot_id"),
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
                uuid("store_id"),
                big_integer("hour_of_day"),
                // The beginning of the hour.
                instant("hour"),
                big_integer("bytes"),
            ],
            &["store_id", "hour_of_day"],
        ),
        table(
            "tasks",
            [
                uuid("store_id"),
                uuid("id"),
                uuid("delivery_id"),
                text("kind"),
                json_binary("address"),
                instant("after"),
                instant("before"),
                boolean("time_slot"),
                text("comments"),
                big_integer_null("weight"),
                json_binary("packages"),
                json_binary("tags"),
                json_binary("metadata"),
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
                uuid("store_id"),
                uuid("retail_price_id"),
                uuid("delivery_id"),
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
