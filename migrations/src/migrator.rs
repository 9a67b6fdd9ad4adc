//! The migrations, for sqlx.

use sea_orm::DbBackend;
use sqlx::{
    AssertSqlSafe, SqlSafeStr as _,
    migrate::{Migration, MigrationType, Migrator},
};

macro_rules! files {
    ($($name:literal)+) => {
        [$(($name, include_str!(concat!("../sql/", $name, ".sql")))),+]
    };
}

/// The names and texts of all migrations, in order.
pub(crate) const FILES: [(&str, &str); 37] = files![
    "0001_initial_schema"
    "0002_add_traceparent"
    "0003_add_task_states"
    "0004_add_store_refuses_unpriced"
    "0005_add_task_list_index"
    "0006_add_task_events"
    "0007_add_couriers"
    "0008_add_courier_list_index"
    "0009_add_day_list_index"
    "0010_add_courier_clients"
    "0011_add_task_changes"
    "0012_add_task_creations"
    "0013_add_incidents"
    "0014_add_delivery_state"
    "0015_add_delivery_state_index"
    "0016_add_delivery_day_index"
    "0017_add_erasing_to_delivery_day_index"
    "0018_add_states_of_open_deliveries"
    "0020_add_incident_list_index"
    "0021_add_tracking"
    "0022_add_index_of_couriers_tasks"
    "0025_add_notification_state_index"
    "0027_add_incidents_to_task_changes"
    "0028_add_deliveries_to_created_bytes"
    "0029_add_images"
    "0030_add_brand"
    "0031_add_gauges_and_key_deliveries"
    "0032_add_key_delivery_index"
    "0033_add_notification_delivery_index"
    "0034_add_index_of_late_creations"
    "0035_add_failing_webhooks_index"
    "0036_add_autovacuum_settings"
    "0037_add_retention_lease"
    "0038_add_erased_delivery_index"
    "0039_add_quote_delivery_index"
    "0040_add_store_disabling"
    "0041_add_audit_events"
];

/// The names of all migrations, in order.
pub fn names() -> Vec<&'static str> {
    FILES.map(|(name, _)| name).into()
}

/// What `SQLite` calls something else, or does not know.
const REPLACED_FOR_SQLITE: [(&str, &str); 6] = [
    (" bigserial", " integer"),
    (" bigint", " integer"),
    (" bytea", " blob"),
    (" jsonb", " jsonb_text"),
    (" uuid", " uuid_text"),
    (" CONCURRENTLY", ""),
];

/// `SQLite` ignores the rest of a migration after this line.
const POSTGRES_ONLY: &str = "\n-- PostgreSQL only.\n";

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
        let end = text.find(POSTGRES_ONLY).unwrap_or(text.len());
        text.truncate(end);
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
