//! The database schema: files of SQL, applied in order by sqlx's `Migrator`.
//!
//! How to write a migration: add `sql/000N_verb_noun.sql`, and its name to `FILES`; never change a released
//! file. Programs of the previous release serve over the new schema during an upgrade, and start over it
//! after a rollback (docs/operations.md). The verb says what they can do:
//!
//! - `add`: programs that do not know the migration start over it. It only adds what they can
//!   ignore: tables, indexes that are not unique, columns that are nullable or have a default. They
//!   write rows without its values, and the new release works with those.
//! - any other, such as `drop`: programs that do not know the migration refuse to start, so that
//!   its release cannot be rolled back. It only removes what the previous release no longer uses
//!   (expand/contract), because cores of that release serve until they are replaced.
//!
//! Conventions: statements are those of `PostgreSQL`; for `SQLite`, [`migrator`] replaces the names of types, and
//! ignores what follows the line `-- PostgreSQL only.`. Instants are `bigint` microseconds since 1970 (comparable
//! and exact on both); ids are UUIDs; JSON is `jsonb` on `PostgreSQL`, text on `SQLite`. Every table of a store's
//! data has `store_id` first in its primary key.
//!
//! An index of a large table has a file of its own, which begins with `-- no-transaction` and has one
//! statement, `CREATE INDEX CONCURRENTLY IF NOT EXISTS`: cores write meanwhile.

mod compatibility;
mod connect_error;
mod database_url;
mod migrator;
mod pooler;

pub use compatibility::{Unusable, applied, check_writable, is_empty, pending};
pub use connect_error::{driver_error, explain_connect_error, is_transient};
pub use database_url::{
    DatabaseConfig, DatabaseServerVerification, RefusedUrl, create_sqlite_file, new_sqlite_file,
    sqlite_file,
};
pub use migrator::{migration, migrator, names, version};
pub use pooler::{explain_pooler, without_prepared_statements};
