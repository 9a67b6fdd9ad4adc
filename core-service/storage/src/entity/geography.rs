//! Rows of zones and of the geocode cache.

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
