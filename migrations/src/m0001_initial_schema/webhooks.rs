//! Webhooks, their receivers' hosts, their notifications, and the attempts to deliver them.

use sea_orm_migration::{
    prelude::*,
    schema::{
        big_integer, big_integer_null, blob, blob_null, boolean, text, text_null, uuid, uuid_null,
    },
};

use crate::columns::{index, instant, optional_instant, partial_index, table};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        table(
            "webhooks",
            [
                uuid("store_id"),
                uuid("id"),
                uuid("api_client_id"),
                text("event"),
                text("url"),
                // The URL's host and port.
                text("host"),
                blob("encrypted_secret"),
                // Each prefixed with its length in two bytes, oldest first.
                blob_null("encrypted_retired_secrets"),
                optional_instant("overlap_ends_at"),
                // The webhook's position in the queue; null if no notification is pending. Never
                // after both the instant when the earliest is due and that of the last claim.
                optional_instant("next_due_at"),
                // How long the last attempt took: healthy, lagging or slow; null before the first.
                text_null("receiver_health"),
                // Whether its receiver has accepted a notification, and not only failed for a
                // minute since.
                boolean("is_proven"),
                // The first failure since the last success.
                optional_instant("failing_since"),
                instant("created_at"),
                optional_instant("disabled_at"),
                text_null("disabled_reason"),
                // The period in which it was disabled, until its missed events are enqueued.
                optional_instant("disabled_from"),
                optional_instant("disabled_until"),
            ],
            &["store_id", "id"],
        ),
        // Hosts at which an unproven webhook had an attempt: the store's next attempt at the host
        // waits until that one ends, and for a pause after failures.
        table(
            "receiver_hosts",
            [
                uuid("store_id"),
                text("host"),
                // By the lease clock.
                instant("in_flight_until"),
                // How many attempts failed since a notification was accepted.
                big_integer("failures"),
                instant("failed_at"),
            ],
            &["store_id", "host"],
        ),
        table(
            "notifications",
            [
                uuid("store_id"),
                uuid("id"),
                uuid("event_id"),
                uuid("webhook_id"),
                text("event"),
                uuid("delivery_id"),
                text("state"),
                big_integer("attempts"),
                // The number of attempts made before the retry schedule last started.
                big_integer("attempts_at_resend").default(0).take(),
                instant("due_at"),
                uuid_null("lease_token"),
                optional_instant("lease_expires_at"),
                instant("created_at"),
                optional_instant("finished_at"),
            ],
            &["store_id", "id"],
        ),
        table(
            "attempts",
            [
                uuid("store_id"),
                uuid("notification_id"),
                big_integer("number"),
                text_null("failure"),
                big_integer_null("status"),
                // Microseconds.
                big_integer("duration"),
                text("response_body"),
                instant("recorded_at"),
            ],
            &["store_id", "notification_id", "number"],
        ),
    ]
}

/// Most stored notifications are delivered: the partial indexes for claims and recovery exclude
/// them, so that these read few rows.
pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    let by_creation = &["store_id", "webhook_id", "created_at", "id"];
    vec![
        index("webhooks_by_event", "webhooks", &["store_id", "event"]),
        index("webhooks_by_host", "webhooks", &["store_id", "host"]),
        // Operators address a webhook without its store.
        index("webhooks_by_id", "webhooks", &["id"]),
        partial_index(
            "webhooks_by_next_due",
            "webhooks",
            &["next_due_at"],
            "next_due_at IS NOT NULL",
        ),
        index("notifications_by_id", "notifications", &["id"]),
        // The order of lists, newest first.
        index("notifications_by_creation", "notifications", by_creation),
        partial_index(
            "notifications_failed",
            "notifications",
            by_creation,
            "state <> 'delivered' AND (attempts > 0 OR state = 'cancelled')",
        ),
        partial_index(
            "notifications_pending",
            "notifications",
            &["store_id", "webhook_id", "due_at"],
            "state = 'pending'",
        ),
        partial_index(
            "notifications_leased",
            "notifications",
            &["store_id", "webhook_id", "lease_expires_at"],
            "state = 'leased'",
        ),
        // For retention.
        partial_index(
            "notifications_finished",
            "notifications",
            &["finished_at"],
            "finished_at IS NOT NULL",
        ),
    ]
}
