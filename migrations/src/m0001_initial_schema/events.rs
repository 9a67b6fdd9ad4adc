//! The event log and its sequencer.

use sea_orm_migration::{
    prelude::*,
    schema::{big_integer, big_integer_null, text, uuid, uuid_null},
};

use crate::columns::{index, instant, partial_index, table};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "events",
            [
                uuid("store_id"),
                uuid("id"),
                text("name"),
                text("object_collection"),
                uuid("object_id"),
                instant("created_at"),
                // The sequence number within the store. Assigned by the sequencer after the
                // commit; readers see numbered events only.
                big_integer_null("number"),
                // The sequence number over all stores, assigned with `number`.
                big_integer_null("position"),
            ],
            &["store_id", "id"],
        ),
        table(
            "event_counters",
            [
                uuid("store_id"),
                big_integer("last_number"),
                // The newest number that retention has removed; 0 if none.
                big_integer("retained_after"),
            ],
            &["store_id"],
        ),
        // One row: the lease of the core that assigns numbers.
        table(
            "event_sequencers",
            [
                big_integer("id"),
                uuid_null("lease_owner"),
                // By the lease clock.
                instant("lease_expires_at"),
                big_integer("last_position"),
                // The newest position that retention has removed; 0 if none.
                big_integer("retained_after"),
            ],
            &["id"],
        ),
    ]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    let unique = |name, columns| index(name, "events", columns).unique().take();
    vec![
        // Unique, so that no number is assigned twice.
        unique("events_by_number", &["store_id", "number"]),
        unique("events_by_position", &["position"]),
        partial_index(
            "events_unnumbered",
            "events",
            &["created_at", "id"],
            "number IS NULL",
        ),
    ]
}

pub(super) fn sequencer_row() -> InsertStatement {
    Query::insert()
        .into_table("event_sequencers")
        .columns(["id", "lease_expires_at", "last_position", "retained_after"])
        .values_panic([1.into(), 0.into(), 0.into(), 0.into()])
        .take()
}
