//! The database schema, one migration per module, applied in order.
//!
//! How to write a migration: add `m000N_verb_noun.rs` after the last one; never change a released
//! migration. Programs of the previous release serve over the new schema during an upgrade, and
//! start over it after a rollback (docs/operations.md). The verb says what they can do:
//!
//! - `add`: programs that do not know the migration start over it. It only adds what they can
//!   ignore: tables, indexes that are not unique, columns that are nullable or have a default. They
//!   write rows without its values, and the new release works with those.
//! - any other, such as `drop`: programs that do not know the migration refuse to start, so that
//!   its release cannot be rolled back. It only removes what the previous release no longer uses
//!   (expand/contract), because cores of that release serve until they are replaced.
//!
//! Conventions: both engines have the same tables. Instants are `BIGINT` microseconds since
//! 1970 (comparable and exact on both); ids are UUIDs; JSON is `jsonb` on `PostgreSQL`, text on
//! `SQLite`. Every table of a store's data has `store_id` first in its primary key.

mod columns;
mod compatibility;
mod connect_error;
mod database_url;
mod m0001_initial_schema;
mod m0002_add_traceparent;
mod pool;

pub use compatibility::{Unusable, check, check_writable, is_empty, pending};
pub use connect_error::{driver_error, explain_connect_error};
pub use database_url::{
    DatabaseServerVerification, RefusedUrl, create_sqlite_file, new_sqlite_file, sqlite_file,
};
pub use pool::{Pool, explain_pooler, without_prepared_statements};
pub use sea_orm_migration::MigratorTrait;
use sea_orm_migration::{MigrationTrait, async_trait};

/// Each migration is one transaction with its record, over SQLite too: after a crash in it, the next
/// start applies it again.
const IN_TRANSACTION: Option<bool> = Some(true);

/// All migrations, in order.
#[derive(Clone, Copy, Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_initial_schema::Migration),
            Box::new(m0002_add_traceparent::Migration),
        ]
    }
}
