//! Zones and cached geocodes. They are the same for all stores, so that no table has a `store_id`.

use sea_orm_migration::{
    prelude::*,
    schema::{big_integer, blob, json_binary_null, text},
};

use crate::columns::{index, instant, table};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        // Each version contains all zones.
        table(
            "zone_sets",
            [
                big_integer("version"),
                text("definition"),
                instant("created_at"),
            ],
            &["version"],
        ),
        // Results of external geocoders.
        table(
            "geocodes",
            [
                blob("key"),
                // Null: the address was not found.
                json_binary_null("place"),
                instant("expires_at"),
            ],
            &["key"],
        ),
    ]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![index("geocodes_by_expiry", "geocodes", &["expires_at"])]
}
