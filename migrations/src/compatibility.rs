//! Whether this program can migrate a database.

use sea_orm_migration::{
    SchemaManager,
    sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, Statement},
};

use crate::{Migrator, MigratorTrait};

/// Why a database cannot be migrated, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    #[error(
        "the schema is newer than this program, which does not know the migration {0}: start the version that applied it, or a later one"
    )]
    Newer(String),
    #[error(
        "this PostgreSQL is a standby, which accepts no writes: name the primary in the database's URL, or wait until a failover has promoted one"
    )]
    Standby,
    #[error(
        "this PostgreSQL accepts no writes: set default_transaction_read_only = off, also for this user and database"
    )]
    ReadOnly,
    #[error(transparent)]
    Database(#[from] DbErr),
}

/// Fails if the database accepts no writes, or has migrations that this program does not know.
pub async fn check(connection: &impl ConnectionTrait) -> Result<(), Unusable> {
    if connection.get_database_backend() == DbBackend::Postgres {
        check_writable(connection).await?;
    }
    let applied = Migrator::get_migration_models(connection).await?;
    check_known(applied.into_iter().map(|migration| migration.version))
}

/// The names of the migrations that have not been applied. Fails if the database has ones that this
/// program does not know. Changes nothing; some migration has been applied.
pub async fn pending(connection: &impl ConnectionTrait) -> Result<Vec<String>, Unusable> {
    // `Migrator` creates its table first.
    let select = format!("SELECT version FROM {}", Migrator::migration_table_name());
    let statement = Statement::from_string(connection.get_database_backend(), select);
    let rows = connection.query_all_raw(statement).await?.into_iter();
    let applied = rows
        .map(|row| row.try_get_by_index(0))
        .collect::<Result<Vec<String>, _>>()?;
    check_known(applied.iter().cloned())?;
    let known = Migrator::migrations().into_iter();
    let names = known.map(|migration| migration.name().to_owned());
    Ok(names.filter(|name| !applied.contains(name)).collect())
}

fn check_known(mut applied: impl Iterator<Item = String>) -> Result<(), Unusable> {
    let known = Migrator::migrations();
    let is_known = |version: &String| known.iter().any(|migration| migration.name() == version);
    let unknown = applied.find(|version| !is_known(version));
    unknown.map_or(Ok(()), |version| Err(Unusable::Newer(version)))
}

/// Whether no migration has been applied to the database yet.
pub async fn is_empty(connection: &DatabaseConnection) -> Result<bool, DbErr> {
    let table = Migrator::migration_table_name().to_string();
    Ok(!SchemaManager::new(connection).has_table(table).await?)
}

/// Fails if a `PostgreSQL` accepts no writes.
pub async fn check_writable(connection: &impl ConnectionTrait) -> Result<(), Unusable> {
    let sql = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'";
    let statement = Statement::from_string(DbBackend::Postgres, sql);
    let Some(row) = connection.query_one_raw(statement).await? else {
        return Ok(());
    };
    if row.try_get_by_index(0)? {
        return Err(Unusable::Standby);
    }
    if row.try_get_by_index(1)? {
        return Err(Unusable::ReadOnly);
    }
    Ok(())
}
