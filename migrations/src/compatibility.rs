//! Whether this program can use a database's schema, and which migrations it lacks.

use sea_orm::{ConnectionTrait, DbBackend, DbErr, RuntimeErr, Statement};
use sqlx::migrate::MigrateError;

use crate::{explain_pooler, migrator::FILES};

/// The table in which sqlx records the applied migrations.
const TABLE: &str = "_sqlx_migrations";

/// That of the first programs, which is read until another migration is applied.
const FORMER_TABLE: &str = "seaql_migrations";

/// Why a database cannot be migrated, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error("{0}")]
    Refused(String),
    /// Waiting may mend it.
    #[error("{0}")]
    NotReady(String),
    #[error(transparent)]
    Database(DbErr),
}

impl From<DbErr> for Unusable {
    fn from(error: DbErr) -> Self {
        explain_pooler(&error).map_or(Self::Database(error), Self::Refused)
    }
}

impl From<MigrateError> for Unusable {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                DbErr::Exec(RuntimeErr::SqlxError(error.into())).into()
            }
            error => Self::Refused(error.to_string()),
        }
    }
}

/// The names of the migrations to be applied. Fails if the database accepts no writes, or if this
/// program cannot use its schema. Changes nothing.
pub async fn pending(connection: &impl ConnectionTrait) -> Result<Vec<&'static str>, Unusable> {
    let backend = connection.get_database_backend();
    if backend == DbBackend::Postgres {
        check_writable(connection).await?;
    }
    pending_after(&applied(connection).await?)
}

/// The migrations that have not been applied. Fails if others have been, unless they only add and
/// none is missing: then this program is older than the schema, and ignores the additions.
fn pending_after(applied: &[String]) -> Result<Vec<&'static str>, Unusable> {
    let known = FILES.map(|(name, _)| name);
    let pending = known.into_iter();
    let pending: Vec<_> = pending
        .filter(|name| applied.iter().all(|applied| applied != name))
        .collect();
    let mut unknown = applied
        .iter()
        .filter(|name| !known.contains(&name.as_str()));
    // Its name says that it only adds: `0003_add_…`.
    let only_adds = |name: &str| name.split('_').nth(1) == Some("add");
    match unknown.find(|name| !pending.is_empty() || !only_adds(name)) {
        Some(unknown) => Err(Unusable::Refused(format!(
            "the schema is newer than this program, which does not know the migration {unknown}: start the version that applied it, or a later one"
        ))),
        None => Ok(pending),
    }
}

/// The names of the migrations that have been applied, in order.
pub async fn applied(connection: &impl ConnectionTrait) -> Result<Vec<String>, DbErr> {
    let select = if exists(connection, TABLE).await? {
        format!(
            "SELECT substr(CAST(10000 + version AS text), 2) || '_' || description
             FROM {TABLE} ORDER BY version"
        )
    } else if exists(connection, FORMER_TABLE).await? {
        // `m0001_initial_schema`
        format!("SELECT substr(version, 2) FROM {FORMER_TABLE} ORDER BY version")
    } else {
        return Ok(Vec::new());
    };
    let statement = Statement::from_string(connection.get_database_backend(), select);
    let rows = connection.query_all_raw(statement).await?.into_iter();
    rows.map(|row| row.try_get_by_index(0)).collect()
}

/// Whether no migration has been applied to the database yet.
pub async fn is_empty(connection: &impl ConnectionTrait) -> Result<bool, DbErr> {
    Ok(!exists(connection, TABLE).await? && !exists(connection, FORMER_TABLE).await?)
}

async fn exists(connection: &impl ConnectionTrait, table: &str) -> Result<bool, DbErr> {
    let backend = connection.get_database_backend();
    let select = match backend {
        // Not any schema of the search path: it may be that of another platform.
        DbBackend::Postgres => {
            format!("SELECT to_regclass(format('%I.{table}', current_schema())) IS NOT NULL")
        }
        _ => format!("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '{table}')"),
    };
    let statement = Statement::from_string(backend, select);
    let row = connection.query_one_raw(statement).await?;
    row.map_or(Ok(false), |row| row.try_get_by_index(0))
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
    Err(Unusable::NotReady(reason.to_owned()))
}
