//! The migrations, for sqlx.

use sea_orm::DbBackend;
use sqlx::{
    AssertSqlSafe, SqlSafeStr as _,
    migrate::{Migration, MigrationType, Migrator},
};

/// The names and texts of all migrations, in order.
pub(crate) const FILES: [(&str, &str); 12] = [
    (
        "0001_initial_schema",
        include_str!("../sql/0001_initial_schema.sql"),
    ),
    (
        "0002_add_traceparent",
        include_str!("../sql/0002_add_traceparent.sql"),
    ),
    (
        "0003_add_task_states",
        include_str!("../sql/0003_add_task_states.sql"),
    ),
    (
        "0004_add_store_refuses_unpriced",
        include_str!("../sql/0004_add_store_refuses_unpriced.sql"),
    ),
    (
        "0005_add_task_list_index",
        include_str!("../sql/0005_add_task_list_index.sql"),
    ),
    (
        "0006_add_task_events",
        include_str!("../sql/0006_add_task_events.sql"),
    ),
    (
        "0007_add_couriers",
        include_str!("../sql/0007_add_couriers.sql"),
    ),
    (
        "0008_add_courier_list_index",
        include_str!("../sql/0008_add_courier_list_index.sql"),
    ),
    (
        "0009_add_day_list_index",
        include_str!("../sql/0009_add_day_list_index.sql"),
    ),
    (
        "0010_add_courier_clients",
        include_str!("../sql/0010_add_courier_clients.sql"),
    ),
    (
        "0011_add_task_changes",
        include_str!("../sql/0011_add_task_changes.sql"),
    ),
    (
        "0016_add_delivery_day_index",
        include_str!("../sql/0016_add_delivery_day_index.sql"),
    ),
];

/// What `SQLite` calls something else, or does not know.
const REPLACED_FOR_SQLITE: [(&str, &str); 6] = [
    (" bigserial", " integer"),
    (" bigint", " integer"),
    (" bytea", " blob"),
    (" jsonb", " jsonb_text"),
    (" uuid", " uuid_text"),
    (" CONCURRENTLY", ""),
];

/// All migrations. They are applied without sqlx's lock, which belongs to a session: a pooler gives that to
/// other clients. Those of later releases are ignored: [`pending`](crate::pending) refuses them.
pub fn migrator(backend: DbBackend) -> Migrator {
    let migrations = FILES.map(|(name, text)| migration(backend, name, text));
    let mut migrator = Migrator::with_migrations(migrations.into());
    migrator.set_locking(false).set_ignore_missing(true);
    migrator
}

/// A migration. One that begins with `-- no-transaction`, which is sqlx's convention, runs outside a
/// transaction.
pub fn migration(backend: DbBackend, name: &'static str, text: &str) -> Migration {
    let (_, description) = name.split_once('_').unwrap_or_default();
    let mut text = text.to_owned();
    if backend == DbBackend::Sqlite {
        for (postgres, sqlite) in REPLACED_FOR_SQLITE {
            text = text.replace(postgres, sqlite);
        }
    }
    let no_tx = text.starts_with("-- no-transaction");
    let text = AssertSqlSafe(text).into_sql_str();
    Migration::new(
        version(name),
        description.into(),
        MigrationType::Simple,
        text,
        no_tx,
    )
}

/// The version in the name of a migration.
pub fn version(name: &str) -> i64 {
    let (version, _) = name.split_once('_').unwrap_or_default();
    version.parse().unwrap_or_default()
}
