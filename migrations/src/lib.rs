//! The database schema, one step a file, applied in order.
//!
//! How to write one: a file `m000N_verb_noun.rs` after the last; never change one that has been
//! released. Cores of the version before keep running while a new core migrates, so a step may
//! only add (tables, nullable columns, columns with a default, indexes); what is no longer used
//! is dropped one version later.
//!
//! Conventions: both engines have the same tables. Instants are `BIGINT` microseconds since
//! 1970 (comparable and exact on both); ids are UUIDs; JSON is `jsonb` on `PostgreSQL`, text on
//! `SQLite`. `store_id` is in every table of a shop's data and first in its primary key.

mod columns;
mod m0001_create_stores;
mod m0002_create_api_clients;
mod m0003_create_signing_keys;
mod m0004_create_deliveries;
mod m0005_create_webhooks;
mod m0006_create_notifications;
mod m0007_create_retail_price_uses;
mod m0008_create_idempotency_keys;
mod m0009_queue_notifications_by_webhook;
mod m0010_let_deliveries_be_found;
mod m0011_create_zone_sets;
mod m0012_rotate_webhook_secrets;
mod m0013_number_events;
mod m0014_recover_notifications;
mod m0015_create_geocodes;
mod m0016_add_service_areas;
mod m0017_find_failed_notifications;
mod m0018_tell_distance_sources;
mod m0019_tell_slow_webhooks;

pub use sea_orm_migration::MigratorTrait;
use sea_orm_migration::{MigrationTrait, async_trait};

/// All steps, in order.
#[derive(Clone, Copy, Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_create_stores::Migration),
            Box::new(m0002_create_api_clients::Migration),
            Box::new(m0003_create_signing_keys::Migration),
            Box::new(m0004_create_deliveries::Migration),
            Box::new(m0005_create_webhooks::Migration),
            Box::new(m0006_create_notifications::Migration),
            Box::new(m0007_create_retail_price_uses::Migration),
            Box::new(m0008_create_idempotency_keys::Migration),
            Box::new(m0009_queue_notifications_by_webhook::Migration),
            Box::new(m0010_let_deliveries_be_found::Migration),
            Box::new(m0011_create_zone_sets::Migration),
            Box::new(m0012_rotate_webhook_secrets::Migration),
            Box::new(m0013_number_events::Migration),
            Box::new(m0014_recover_notifications::Migration),
            Box::new(m0015_create_geocodes::Migration),
            Box::new(m0016_add_service_areas::Migration),
            Box::new(m0017_find_failed_notifications::Migration),
            Box::new(m0018_tell_distance_sources::Migration),
            Box::new(m0019_tell_slow_webhooks::Migration),
        ]
    }
}
