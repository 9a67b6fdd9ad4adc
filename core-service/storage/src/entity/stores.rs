//! Rows of stores, of their time slots and price lists, and of what is the same for all stores: zones
//! and the geocode cache.

table! {
    /// Rows of `stores`.
    mod store = "stores";
    key(id: Uuid);
    display_name: String,
    time_zone: String,
    currency: String,
    country: String,
    default_address: Option<AddressJson>,
    created_at: Instant,
    service_area: Option<ServiceAreaJson>,
}

table! {
    /// Rows of `time_slots`.
    mod time_slot = "time_slots";
    key(store_id: Uuid, id: Uuid);
    display_name: String,
    definition: String,
    updated_at: Instant,
}

table! {
    /// Rows of `price_lists`.
    mod price_list = "price_lists";
    key(store_id: Uuid, version: i64);
    definition: String,
    created_at: Instant,
}

table! {
    /// Rows of `zone_sets`.
    mod zone_set = "zone_sets";
    key(version: i64);
    definition: String,
    created_at: Instant,
}

table! {
    /// Rows of `geocodes`.
    mod geocode = "geocodes";
    key(key: Vec<u8>);
    /// `None`: the address was not found.
    place: Option<PlaceJson>,
    expires_at: Instant,
}
