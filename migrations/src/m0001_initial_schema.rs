//! The first released schema: one file per group of tables.

mod api_clients;
mod deliveries;
mod events;
mod geography;
mod stores;
mod webhooks;

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        crate::IN_TRANSACTION
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let groups = [
            (stores::tables(), Vec::new()),
            (api_clients::tables(), api_clients::indexes()),
            (deliveries::tables(), deliveries::indexes()),
            (events::tables(), events::indexes()),
            (webhooks::tables(), webhooks::indexes()),
            (geography::tables(), geography::indexes()),
        ];
        for (tables, indexes) in groups {
            for table in tables {
                manager.create_table(table).await?;
            }
            for index in indexes {
                manager.create_index(index).await?;
            }
        }
        manager.execute(events::sequencer_row()).await
    }
}
