//! The schema: brought to this version at the start.

use migrations::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, DatabaseConnection};

use super::Error;

/// Applies the schema. Several cores may start at the same moment: the losers of the race see
/// a failure, and then that there is nothing left to do.
pub(super) async fn migrate(connection: &DatabaseConnection) -> Result<(), Error> {
    let mut tries = 1;
    loop {
        let applied = match refuse_newer(connection).await {
            Ok(()) => Migrator::up(connection, None).await.map_err(Error::from),
            Err(error) => Err(error),
        };
        match applied {
            Ok(()) => return Ok(()),
            Err(error @ Error::Unsuitable(_)) => return Err(error),
            Err(_) if tries < 5 => {
                tokio::time::sleep(super::jitter(7)).await;
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// What a newer version has done to the schema is not known here, so nothing is written to it.
async fn refuse_newer(connection: &impl ConnectionTrait) -> Result<(), Error> {
    let applied = Migrator::get_migration_models(connection).await?;
    let known = Migrator::migrations();
    let unknown = applied
        .iter()
        .map(|step| step.version.as_str())
        .find(|version| !known.iter().any(|step| step.name() == *version));
    match unknown {
        Some(step) => Err(Error::Unsuitable(format!(
            "its schema is newer than this program, which does not know the step {step}: start the version that applied it, or a later one"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use sea_orm::Database;

    use super::*;

    #[tokio::test]
    async fn an_older_schema_is_brought_to_this_version_and_a_newer_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("delivery.sqlite");
        let url = format!("sqlite://{}?mode=rwc", file.display());
        let connection = Database::connect(url).await.unwrap();
        Migrator::up(&connection, Some(2)).await.unwrap();

        migrate(&connection).await.unwrap();

        let pending = Migrator::get_pending_migrations(&connection).await.unwrap();
        assert_eq!(pending.len(), 0);
        connection
            .execute_unprepared(
                "INSERT INTO seaql_migrations (version, applied_at) VALUES ('m9999_fold_space', 0)",
            )
            .await
            .unwrap();
        assert_eq!(
            migrate(&connection).await.unwrap_err().to_string(),
            "its schema is newer than this program, which does not know the step m9999_fold_space: start the version that applied it, or a later one"
        );
    }
}
