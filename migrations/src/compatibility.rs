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
        "this PostgreSQL is a standby, which accepts no writes: promote it (pg_ctl promote), or name the primary in the database's URL"
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
    let known = Migrator::migrations();
    let unknown = Migrator::get_migration_models(connection)
        .await?
        .into_iter()
        .map(|migration| migration.version)
        .find(|version| !known.iter().any(|migration| migration.name() == version));
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
