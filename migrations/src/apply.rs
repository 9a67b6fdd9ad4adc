//! Applies the migrations that a database lacks.

use process::clock::Clock;
use sea_orm::{ConnectionTrait, DbBackend};

use crate::{
    MIGRATIONS, TABLE,
    compatibility::{Unusable, is_empty, pending},
    migration::execute,
};

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
