//! What geocoders elsewhere have answered.

use sea_orm_migration::prelude::*;

use crate::columns::{bytes, index, instant, optional_json, table};

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        // No shop's data: where an address is, is the same for all of them. No answer: it was not
        // found.
        manager
            .create_table(table(
                "geocodes",
                [bytes("key"), optional_json("answer"), instant("expires_at")],
                &["key"],
            ))
            .await?;
        manager
            .create_index(index("geocodes_by_expiry", "geocodes", &["expires_at"]))
            .await
    }
}
