//! Rows of deliveries and their tasks, and of events.

table! {
    /// Rows of `deliveries`.
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
    booked_time_slot_id: Option<Uuid>,
    booked_after: Option<Instant>,
    booked_before: Option<Instant>,
    created_at: Instant,
    cancelled_at: Option<Instant>,
    external_reference: Option<String>,
    /// Copied from the tasks for the filters of lists, as is `completed_at`.
    dropoff_before: Option<Instant>,
    completed_at: Option<Instant>,
    /// When its personal data was erased.
    erased_at: Option<Instant>,
}

table! {
    /// Rows of `tasks`.
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
}

table! {
    /// Rows of `events`.
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
