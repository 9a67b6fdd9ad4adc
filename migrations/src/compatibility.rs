//! Whether this program can use a database's schema, and which migrations it lacks.

use sea_orm::{ConnectionTrait, DbBackend, DbErr, Statement};

use crate::{MIGRATIONS, TABLE, explain_pooler};

/// Why a database cannot be migrated, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Database(DbErr),
}

impl From<DbErr> for Unusable {
    fn from(error: DbErr) -> Self {
        explain_pooler(&error).map_or(Self::Database(error), Self::Refused)
    }
}

/// The names of the migrations to be applied. Fails if the database accepts no writes, or if this
/// program cannot use its schema. Changes nothing.
pub async fn pending(connection: &impl ConnectionTrait) -> Result<Vec<&'static str>, Unusable> {
    let backend = connection.get_database_backend();
    if backend == DbBackend::Postgres {
        check_writable(connection).await?;
    }
    let mut applied = Vec::new();
    if !is_empty(connection).await? {
        let select = format!("SELECT version FROM {TABLE} ORDER BY version");
        let statement = Statement::from_string(backend, select);
        for row in connection.query_all_raw(statement).await? {
            applied.push(row.try_get_by_index(0)?);
        }
    }
    pending_after(&applied)
}

/// The migrations that have not been applied. Fails if others have been, unless they only add and
/// none is missing: then this program is older than the schema, and ignores the additions.
fn pending_after(applied: &[String]) -> Result<Vec<&'static str>, Unusable> {
    let known = MIGRATIONS.map(|migration| migration.name);
    let pending = known.into_iter();
    let pending: Vec<_> = pending
        .filter(|name| applied.iter().all(|applied| applied != name))
        .collect();
    let mut unknown = applied
        .iter()
        .filter(|name| !known.contains(&name.as_str()));
    match unknown.find(|name| !pending.is_empty() || !only_adds(name)) {
        Some(unknown) => Err(Unusable::Refused(format!(
            "the schema is newer than this program, which does not know the migration {unknown}: start the version that applied it, or a later one"
        ))),
        None => Ok(pending),
    }
}

/// Whether a migration's name says that it only adds: `m0003_add_…`.
fn only_adds(name: &str) -> bool {
    name.split('_').nth(1) == Some("add")
}

/// Whether no migration has been applied to the database yet.
pub async fn is_empty(connection: &impl ConnectionTrait) -> Result<bool, DbErr> {
    let backend = connection.get_database_backend();
    let select = match backend {
        // Not any schema of the search path: it may be that of another platform.
        DbBackend::Postgres => {
            format!("SELECT to_regclass(format('%I.{TABLE}', current_schema())) IS NULL")
        }
        _ => format!("SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '{TABLE}')"),
    };
    let statement = Statement::from_string(backend, select);
    let row = connection.query_one_raw(statement).await?;
    row.map_or(Ok(true), |row| row.try_get_by_index(0))
}

/// Fails if a `PostgreSQL` accepts no writes.
pub async fn check_writable(connection: &impl ConnectionTrait) -> Result<(), Unusable> {
    let sql = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";
    let statement = Statement::from_string(DbBackend::Postgres, sql);
    let Some(row) = connection.query_one_raw(statement).await? else {
        return Ok(());
    };
    let reason = if row.try_get_by_index(0)? {
        "this PostgreSQL is a standby, which accepts no writes: name the primary in the database's URL, or wait until a failover has promoted one"
    } else if row.try_get_by_index(1)? {
        "this PostgreSQL accepts no writes: set default_transaction_read_only = off, also for this user and database"
    } else {
        return Ok(());
    };
    Err(Unusable::Refused(reason.to_owned()))
}
