//! Rows of events, and of the bounds and the sequencer of the log.

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

table! {
    /// Rows of `event_counters`: the bounds of each store's log.
    mod event_counter = "event_counters";
    key(store_id: Uuid);
    last_number: i64,
    /// The newest number that retention has removed; 0 if none.
    retained_after: i64,
}

table! {
    /// The only row of `event_sequencers`: the bounds of the log over all stores.
    mod event_sequencer = "event_sequencers";
    key(id: i64);
    last_position: i64,
    /// The newest position that retention has removed; 0 if none.
    retained_after: i64,
}
