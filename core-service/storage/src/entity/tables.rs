//! The tables, except those whose statements are all SQL text. The aggregates' files beside this folder
//! convert rows to domain types and back.

table! {
    mod api_client = "api_clients";
    key(id: Uuid);
    store_id: Option<Uuid>,
    display_name: String,
    api_key: String,
    secret_hash: Vec<u8>,
    /// Each the hash (32 bytes) and the expiry (8 bytes), oldest first.
    replaced_secrets: Vec<u8>,
    scopes: String,
    default_address: Option<AddressJson>,
    created_at: Instant,
    disabled_at: Option<Instant>,
    /// As whom it works.
    courier_id: Option<Uuid>,
    /// How it sees the status of tasks; null if a program of an earlier version created it.
    task_status: Option<String>,
}

table! {
    mod audit_event = "audit_events";
    key(id: Uuid);
    created_at: Instant,
    api_client_id: Uuid,
    address: Option<String>,
    rpc: String,
    resource: String,
    store_id: Option<Uuid>,
}

table! {
    mod idempotency_key = "idempotency_keys";
    key(store_id: Uuid, api_client_id: Uuid, key_hash: Vec<u8>);
    request_hash: Vec<u8>,
    encrypted_response: Vec<u8>,
    created_at: Instant,
    /// Whose personal data the response may have; nil if that of none.
    delivery_id: Option<Uuid>,
}

table! {
    mod signing_key = "signing_keys";
    key(id: String);
    encrypted_private_key: Vec<u8>,
    created_at: Instant,
}

table! {
    mod platform_secret = "platform_secrets";
    key(name: String);
    encrypted_secret: Vec<u8>,
}

table! {
    mod delivery = "deliveries";
    key(store_id: Uuid, id: Uuid);
    distance_meters: i64,
    duration_seconds: i64,
    distance_source: String,
    price_net: Option<i64>,
    price_tax: Option<i64>,
    price_currency: Option<String>,
    /// The name of the quote that sets the price.
    retail_price: Option<String>,
    created_at: Instant,
    external_reference: Option<String>,
    /// When its personal data was erased.
    erased_at: Option<Instant>,
    /// Null if a program of an earlier version created it, and once it is erased.
    tracking_secret: Option<Vec<u8>>,
    tracking_revoked_at: Option<Instant>,
    /// This one and those below are not read for a shop's lists.
    booked_time_slot_id: Option<Uuid>,
    booked_after: Option<Instant>,
    booked_before: Option<Instant>,
    /// Copied from the tasks for the filters of lists, as are those below: a delivery is read without them.
    cancelled_at: Option<Instant>,
    dropoff_before: Option<Instant>,
    completed_at: Option<Instant>,
    /// Null if it is created, completed or cancelled.
    state: Option<String>,
}

table! {
    mod task = "tasks";
    key(store_id: Uuid, id: Uuid);
    delivery_id: Uuid,
    kind: String,
    address: AddressJson,
    after: Instant,
    before: Instant,
    /// Whether the window was requested as a time slot.
    time_slot: bool,
    comments: String,
    weight: Option<i64>,
    packages: PackagesJson,
    tags: TagsJson,
    metadata: MetadataJson,
    created_at: Instant,
    updated_at: Instant,
    completed_at: Option<Instant>,
    cancelled_at: Option<Instant>,
    /// `doing` or `failed`; null in the other states, which `completed_at` and `cancelled_at` tell apart.
    state: Option<String>,
    /// Null until a program of this version or a later one changes the task.
    state_since: Option<Instant>,
    failure_reason: Option<String>,
    /// Null if none is open.
    open_incidents: Option<i64>,
    /// Its place in the list of a courier on a day, such as `2026-12-01`: all three or none.
    courier_id: Option<Uuid>,
    list_day: Option<String>,
    /// Null without images.
    images: Option<ImagesJson>,
    /// This one and the one below are not read for a shop's lists.
    list_position: Option<i64>,
    /// Valid if `state_since` is when the task got its state: a program of an earlier version does not set it.
    state_set_by: Option<String>,
}

table! {
    mod courier = "couriers";
    key(id: Uuid);
    display_name: String,
    telephone: Option<String>,
    created_at: Instant,
    disabled_at: Option<Instant>,
}

table! {
    mod courier_list = "courier_lists";
    key(day: String, courier_id: Uuid);
    changed_at: Instant,
    changed_by: Uuid,
}

table! {
    mod queued_task_change = "task_change_queue";
    key(id: i64);
    store_id: Option<Uuid>,
    delivery_id: Option<Uuid>,
    courier_id: Option<Uuid>,
    list_day: Option<String>,
    is_creation: Option<bool>,
    incident_id: Option<Uuid>,
}

table! {
    mod task_change = "task_changes";
    key(position: i64);
    moved_at: Instant,
    store_id: Option<Uuid>,
    delivery_id: Option<Uuid>,
    courier_id: Option<Uuid>,
    list_day: Option<String>,
    incident_id: Option<Uuid>,
}

table! {
    mod task_event = "task_events";
    key(store_id: Uuid, task_id: Uuid, created_at: Instant);
    transition: String,
    actor: String,
    /// Nil once it is erased.
    api_client_id: Uuid,
    occurred_at: Instant,
    is_clamped: bool,
    reason: Option<String>,
    notes: Option<String>,
    contact_name: Option<String>,
    /// The new window of a reschedule.
    after: Option<Instant>,
    before: Option<Instant>,
    previous_after: Option<Instant>,
    previous_before: Option<Instant>,
    /// The list that a task was put in.
    courier_id: Option<Uuid>,
    list_day: Option<String>,
}

table! {
    mod incident = "incidents";
    key(store_id: Uuid, id: Uuid);
    delivery_id: Uuid,
    task_id: Uuid,
    description: Option<String>,
    failure_reason: Option<String>,
    metadata: MetadataJson,
    actor: String,
    /// Nil once it is erased.
    api_client_id: Uuid,
    created_at: Instant,
    occurred_at: Instant,
    is_clamped: bool,
    closed_at: Option<Instant>,
    closed_with: Option<String>,
}

table! {
    mod image = "images";
    key(store_id: Uuid, id: Uuid);
    task_id: Uuid,
    content_type: String,
    size: i64,
    hash: Vec<u8>,
    created_at: Instant,
}

table! {
    mod event = "events";
    key(store_id: Uuid, id: Uuid);
    name: String,
    object_collection: String,
    object_id: Uuid,
    created_at: Instant,
    /// The sequence number within the store. Assigned by the sequencer after the commit.
    number: Option<i64>,
    /// The sequence number over all stores, assigned with `number`.
    position: Option<i64>,
}

table! {
    mod store = "stores";
    key(id: Uuid);
    display_name: String,
    time_zone: String,
    currency: String,
    country: String,
    default_address: Option<AddressJson>,
    created_at: Instant,
    service_area: Option<ServiceAreaJson>,
    refuses_unpriced: bool,
    has_tracking: bool,
    telephone: Option<String>,
    colour: Option<i64>,
    logo_version: Option<String>,
    disabled_at: Option<Instant>,
}

table! {
    mod time_slot = "time_slots";
    key(store_id: Uuid, id: Uuid);
    display_name: String,
    definition: String,
    updated_at: Instant,
}

table! {
    mod price_list = "price_lists";
    key(store_id: Uuid, version: i64);
    definition: String,
    created_at: Instant,
}

table! {
    mod zone_set = "zone_sets";
    key(version: i64);
    definition: String,
    created_at: Instant,
}

table! {
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
    mod receiver_host = "receiver_hosts";
    key(store_id: Uuid, host: String);
    /// By the lease clock.
    in_flight_until: Instant,
    failures: i64,
    failed_at: Instant,
}

table! {
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
    mod attempt = "attempts";
    key(store_id: Uuid, notification_id: Uuid, number: i64);
    failure: Option<String>,
    status: Option<i64>,
    /// Microseconds.
    duration: i64,
    response_body: String,
    recorded_at: Instant,
}
