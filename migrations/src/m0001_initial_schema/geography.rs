//! Zones and cached geocodes. They are the same for all stores, so that no table has a `store_id`.

use sea_orm_migration::prelude::*;

use crate::columns::{bytes, index, instant, integer, optional_json, table, text};

pub(super) fn tables() -> Vec<TableCreateStatement> {
    vec![
        // Each version contains all zones.
        table(
            "zone_sets",
            [
                integer("version"),
                text("definition"),
                instant("created_at"),
            ],
            &["version"],
        ),
        // Results of external geocoders.
        table(
            "geocodes",
            [
                bytes("key"),
                // Null: the address was not found.
                optional_json("place"),
                instant("expires_at"),
            ],
            &["key"],
        ),
    ]
}

pub(super) fn indexes() -> Vec<IndexCreateStatement> {
    vec![index("geocodes_by_expiry", "geocodes", &["expires_at"])]
}
