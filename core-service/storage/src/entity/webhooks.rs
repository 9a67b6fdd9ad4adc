//! Rows of webhooks, their receivers' hosts, their notifications, and attempts.

table! {
    /// Rows of `webhooks`.
    mod webhook = "webhooks";
    key(store_id: Uuid, id: Uuid);
    api_client_id: Uuid,
    event: String,
    url: String,
    /// The URL's host and port.
    host: String,
    encrypted_secret: Vec<u8>,
    /// Each prefixed with its length in two bytes, oldest first.
    encrypted_retired_secrets: Option<Vec<u8>>,
    overlap_ends_at: Option<Instant>,
    created_at: Instant,
    disabled_at: Option<Instant>,
    disabled_reason: Option<String>,
    /// The last disabled period; set when the webhook is enabled again.
    disabled_from: Option<Instant>,
    disabled_until: Option<Instant>,
    /// The position in the queue, see `notifications::queue`.
    next_due_at: Option<Instant>,
    receiver_health: Option<String>,
    is_proven: bool,
    failing_since: Option<Instant>,
}

table! {
    /// Rows of `receiver_hosts`.
    mod receiver_host = "receiver_hosts";
    key(store_id: Uuid, host: String);
    /// By the lease clock.
    in_flight_until: Instant,
    failures: i64,
    failed_at: Instant,
}

table! {
    /// Rows of `notifications`.
    mod notification = "notifications";
    key(store_id: Uuid, id: Uuid);
    event_id: Uuid,
    webhook_id: Uuid,
    event: String,
    delivery_id: Uuid,
    state: String,
    attempts: i64,
    /// The number of attempts made before the retry schedule last started.
    attempts_at_resend: i64,
    due_at: Instant,
    lease_token: Option<Uuid>,
    lease_expires_at: Option<Instant>,
    created_at: Instant,
    finished_at: Option<Instant>,
    /// The W3C header of the call that caused the event.
    traceparent: Option<String>,
}

table! {
    /// Rows of `attempts`.
    mod attempt = "attempts";
    key(store_id: Uuid, notification_id: Uuid, number: i64);
    failure: Option<String>,
    status: Option<i64>,
    /// Microseconds.
    duration: i64,
    response_body: String,
    recorded_at: Instant,
}
