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
//! Conventions: statements are those of `PostgreSQL`; for `SQLite`, [`apply_next`] replaces the names
//! of types. Instants are `bigint` microseconds since 1970 (comparable and exact on both); ids are
//! UUIDs; JSON is `jsonb` on `PostgreSQL`, text on `SQLite`. Every table of a store's data has
//! `store_id` first in its primary key.

mod compatibility;
mod connect_error;
mod database_url;
mod m0001_initial_schema;
mod m0002_add_traceparent;
mod pooler;

use process::clock::Clock;
use sea_orm::{ConnectionTrait, DbBackend, DbErr};

pub use compatibility::{Unusable, check_writable, is_empty, pending};
pub use connect_error::{driver_error, explain_connect_error};
pub use database_url::{
    DatabaseServerVerification, RefusedUrl, create_sqlite_file, new_sqlite_file, sqlite_file,
};
pub use pooler::{explain_pooler, without_prepared_statements};

/// A migration, recorded under its name.
struct Migration {
    name: &'static str,
    statements: &'static [&'static str],
}

/// All migrations, in order.
const MIGRATIONS: [Migration; 2] = [
    m0001_initial_schema::MIGRATION,
    m0002_add_traceparent::MIGRATION,
];

/// The table of the applied migrations.
const TABLE: &str = "seaql_migrations";

/// Applies the first pending migration and records it, in the caller's transaction: after a crash in
/// it, the next start applies it again. Returns its name; `None` if none is pending. Fails if the
/// database accepts no writes, or if this program cannot use its schema.
pub async fn apply_next(
    transaction: &impl ConnectionTrait,
) -> Result<Option<&'static str>, Unusable> {
    let pending = pending(transaction).await?;
    let Some(migration) = MIGRATIONS
        .iter()
        .find(|migration| pending.contains(&migration.name))
    else {
        return Ok(None);
    };
    if transaction.get_database_backend() == DbBackend::Postgres {
        // While a statement waits for its lock, as during a dump, all statements about the table wait
        // for it: those of running cores too.
        let statement = "SET LOCAL lock_timeout = '2s'";
        transaction.execute_unprepared(statement).await?;
    }
    if is_empty(transaction).await? {
        let columns = "version varchar NOT NULL PRIMARY KEY, applied_at bigint NOT NULL";
        execute(transaction, &format!("CREATE TABLE {TABLE} ({columns})")).await?;
    }
    for statement in migration.statements {
        execute(transaction, statement).await?;
    }
    let (name, now) = (migration.name, Clock::system().now().as_second());
    let record = format!("INSERT INTO {TABLE} (version, applied_at) VALUES ('{name}', {now})");
    execute(transaction, &record).await?;
    Ok(Some(name))
}

async fn execute(transaction: &impl ConnectionTrait, statement: &str) -> Result<(), DbErr> {
    let mut statement = statement.to_owned();
    if transaction.get_database_backend() == DbBackend::Sqlite {
        for (postgres, sqlite) in [
            (" bigint", " integer"),
            (" bytea", " blob"),
            (" jsonb", " jsonb_text"),
            (" uuid", " uuid_text"),
        ] {
            statement = statement.replace(postgres, sqlite);
        }
    }
    transaction.execute_unprepared(&statement).await?;
    Ok(())
}
