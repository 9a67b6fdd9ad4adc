//! A migration, whose statements are those of `PostgreSQL`.

use sea_orm::{ConnectionTrait, DbBackend, DbErr};

/// A migration, recorded under its name.
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    pub(crate) statements: &'static [&'static str],
}

/// Executes a statement. For `SQLite`, replaces the names of types.
pub(crate) async fn execute(
    transaction: &impl ConnectionTrait,
    statement: &str,
) -> Result<(), DbErr> {
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
