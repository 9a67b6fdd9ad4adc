//! Migrates the schema to this version: when a core starts, and for `delivery migrate`.

use futures_util::future::BoxFuture;
use migrations::Unusable;
use sea_orm::ConnectionTrait as _;

use super::{Error, Session, connect::Target};

/// Fails if no schema has been created in the database, so that a core does not migrate one that
/// was named by mistake.
pub(super) async fn require(session: &Session) -> Result<(), Error> {
    // In a transaction: see `Target::keeps_statements`.
    session.begin().await?;
    let is_empty = migrations::is_empty(session).await;
    session.roll_back().await?;
    if is_empty? {
        return Err(not_bootstrapped());
    }
    Ok(())
}

pub(super) fn not_bootstrapped() -> Error {
    Error::Misconfigured(NOT_BOOTSTRAPPED.to_owned())
}

/// Is given the name of each migration that has been applied.
type Report<'a> = &'a mut (dyn FnMut(&'static str) + Send);

/// Applies the pending migrations. Several cores may start at the same time: of each migration, all but one
/// fail, and find it applied when they retry.
pub(super) async fn migrate(session: &Session) -> Result<(), Error> {
    let (mut tries, mut left) = (1, usize::MAX);
    loop {
        match apply_pending(session, &mut |_| ()).await {
            Err(Unusable::Database(_)) if tries < 5 => {
                // Up to 128 ms.
                tokio::time::sleep(super::connections::jitter(7)).await;
                let pending = pending(session).await.map_or(left, |names| names.len());
                tries = if pending < left { 1 } else { tries + 1 };
                left = pending;
            }
            result => return result.map_err(|error| explain_lock(error.into())),
        }
    }
}

fn explain_lock(error: Error) -> Error {
    if error.is_lock_timeout() {
        return Error::NotReady(
            "a migration waits for a lock that another session holds, such as a dump or another migration: let that end, or find it in pg_stat_activity and end it".to_owned(),
        );
    }
    error
}

/// Applies the pending migrations, and reports their names. After a crash, the next start applies again the one
/// that was not recorded.
async fn apply_pending(session: &Session, report: Report<'_>) -> Result<(), Unusable> {
    let migrator = migrations::migrator(session.get_database_backend());
    for name in pending(session).await? {
        session
            .migrate(&migrator, migrations::version(name))
            .await?;
        report(name);
    }
    Ok(())
}

async fn pending(session: &Session) -> Result<Vec<&'static str>, Unusable> {
    // In a transaction: see `Target::keeps_statements`. Not in one that writes, which takes SQLite's lock.
    session.execute_unprepared("BEGIN").await?;
    let pending = migrations::pending(session).await;
    // Fails if the connection is lost, and the transaction with it.
    let _ = session.roll_back().await;
    pending
}

/// Applies the pending migrations of a database, without retries, or only reports them, and then creates no
/// file. Boxed, so that
/// the program need not compile this again.
pub fn migrate_database<'a>(
    url: &'a str,
    dry_run: bool,
    report: Report<'a>,
) -> BoxFuture<'a, Result<(), Unusable>> {
    Box::pin(async move {
        if dry_run && migrations::new_sqlite_file(url).is_some() {
            migrations::names().into_iter().for_each(report);
            return Ok(());
        }
        let session = connect(url).await?;
        if dry_run {
            pending(&session).await?.into_iter().for_each(report);
        } else {
            apply_pending(&session, report).await?;
        }
        // Fails if the connection is lost. What was applied is committed.
        let _ = session.close().await;
        Ok(())
    })
}

async fn connect(url: &str) -> Result<Session, Unusable> {
    migrations::create_sqlite_file(url);
    let connected = async { Target::of(url)?.session().await }.await;
    connected.map_err(|error| match error.explained(url) {
        Error::Unavailable(cause) => Unusable::Database(cause),
        error => Unusable::Refused(error.to_string()),
    })
}

/// The message for a database without a platform.
pub const NOT_BOOTSTRAPPED: &str = "this database has not been bootstrapped: run `core-service bootstrap` with the same database and master key first";

impl From<Unusable> for Error {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Database(error) => error.into(),
            Unusable::Refused(reason) => Self::Misconfigured(reason),
            Unusable::NotReady(reason) => Self::NotReady(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sea_orm::{DbBackend, sqlx::migrate::Migrator};

    use super::*;
    use crate::{Storage, storage::open};

    /// The table in which sqlx records the applied migrations.
    const RECORDS: &str =
        "CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, description text,
        installed_on text, success boolean, checksum blob, execution_time bigint)";

    #[tokio::test]
    async fn a_missing_sqlite_file_is_not_created_for_an_existing_database() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("mistyped.sqlite");
        let url = format!("sqlite://{}?mode=rwc", file.display());

        let error = Storage::connect_existing(&url, 1).await.unwrap_err();

        assert_eq!(error.to_string(), NOT_BOOTSTRAPPED);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        Storage::connect(&url, 1)
            .await
            .unwrap()
            .close()
            .await
            .unwrap();
        let existing = Storage::connect_existing(&url, 1).await.unwrap();
        existing.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_migration_that_is_not_recorded_is_applied_again() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/d?mode=rwc", directory.path().display());
        let mut database = connected(&url).await;
        database.execute_unprepared(RECORDS).await.unwrap();
        let pending = migrations::pending(&database).await.unwrap();
        assert!(pending.len() > 1);
        for migration in pending {
            let version = migrations::version(migration);
            let fail = format!(
                "CREATE TRIGGER fails BEFORE INSERT ON _sqlx_migrations WHEN NEW.version = {version} BEGIN SELECT RAISE(ABORT, 'crash'); END"
            );
            database.execute_unprepared(&fail).await.unwrap();
            apply_pending(&database, &mut |_| ()).await.unwrap_err();
            // Like a crash, which loses the connection.
            database.close().await.unwrap();
            database = connected(&url).await;
            let drop = "DROP TRIGGER fails";
            database.execute_unprepared(drop).await.unwrap();
        }

        apply_pending(&database, &mut |_| ()).await.unwrap();
    }

    #[tokio::test]
    async fn a_dry_run_reports_what_a_run_applies_once() {
        let directory = tempfile::tempdir().unwrap();
        let urls = std::iter::once(crate::fixture::url(&directory));
        for url in urls.chain(crate::fixture::postgres_url()) {
            let mut runs = Vec::new();
            for dry_run in [true, true, false, false] {
                let mut reported = Vec::new();
                let mut report = |name| reported.push(name);
                let run = migrate_database(&url, dry_run, &mut report);
                run.await.unwrap();
                runs.push(reported);
                if let Some(file) = migrations::sqlite_file(&url) {
                    assert_eq!(file.exists(), !dry_run);
                }
            }

            let [dry, dry_again, applied, applied_again] = runs.try_into().unwrap();
            assert!(dry.len() > 1);
            assert_eq!(dry_again, dry);
            assert_eq!(applied, dry);
            assert_eq!(applied_again, [""; 0]);
        }
    }

    async fn connected(url: &str) -> Session {
        open(url).await.unwrap().session().await.unwrap()
    }

    #[tokio::test]
    async fn a_migration_that_fails_each_time_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let url = crate::fixture::url(&directory);
        let database = connected(&url).await;
        database.execute_unprepared(RECORDS).await.unwrap();
        let fail = "CREATE TRIGGER fails BEFORE INSERT ON _sqlx_migrations BEGIN SELECT RAISE(ABORT, 'no migration'); END";
        database.execute_unprepared(fail).await.unwrap();

        let migrated = tokio::time::timeout(Duration::from_mins(1), migrate(&database)).await;

        let error = migrated.expect("the tries end").unwrap_err();
        assert!(format!("{error:?}").contains("no migration"), "{error:?}");
    }

    #[tokio::test]
    async fn only_the_owner_has_access_to_the_files_of_sqlite() {
        use std::os::unix::fs::PermissionsExt as _;

        let (directory, storage) = crate::fixture::sqlite().await;

        let mut files: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|file| {
                let file = file.unwrap();
                let mode = file.metadata().unwrap().permissions().mode() & 0o777;
                (file.file_name().into_string().unwrap(), mode)
            })
            .collect();
        files.sort();
        let expected = [
            "delivery.sqlite",
            "delivery.sqlite-shm",
            "delivery.sqlite-wal",
        ];
        assert_eq!(files, expected.map(|name| (name.to_owned(), 0o600)));
        drop(storage);
    }

    /// A new database of each engine that is installed, with this version's schema.
    async fn migrated() -> (tempfile::TempDir, Vec<Session>) {
        let directory = tempfile::tempdir().unwrap();
        let urls = std::iter::once(crate::fixture::url(&directory));
        let mut databases = Vec::new();
        for url in urls.chain(crate::fixture::postgres_url()) {
            let database = connected(&url).await;
            migrate(&database).await.unwrap();
            assert_eq!(migrations::pending(&database).await.unwrap(), [""; 0]);
            databases.push(database);
        }
        (directory, databases)
    }

    async fn record(database: &Session, migration: &str) {
        let (version, description) = migration.split_once('_').unwrap();
        let insert = format!(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES ({version}, '{description}', true, '', 0)"
        );
        database.execute_unprepared(&insert).await.unwrap();
    }

    /// Asserts that the schema is used, or refused for a migration.
    async fn assert_refused_for(migration: Option<&str>, database: &Session) {
        let message = migration.map(|migration| format!("the schema is newer than this program, which does not know the migration {migration}: start the version that applied it, or a later one"));
        let migrated = migrate(database).await.err();
        assert_eq!(migrated.map(|error| error.to_string()), message);
        let pending = migrations::pending(database).await.err();
        assert_eq!(pending.map(|error| error.to_string()), message);
    }

    #[tokio::test]
    async fn a_schema_to_which_later_versions_have_only_added_is_used() {
        let (_directory, databases) = migrated().await;
        for database in databases {
            record(&database, "9998_add_column").await;
            record(&database, "9999_add_index").await;
            assert_refused_for(None, &database).await;
        }
    }

    #[tokio::test]
    async fn a_schema_from_which_a_later_version_may_have_removed_something_is_refused() {
        let (_directory, databases) = migrated().await;
        for database in databases {
            for migration in ["9999_drop_add_column", "9999_", "9999_added_column"] {
                record(&database, "9998_add_column").await;
                record(&database, migration).await;
                assert_refused_for(Some(migration), &database).await;
                let delete = "DELETE FROM _sqlx_migrations WHERE version >= 9990";
                database.execute_unprepared(delete).await.unwrap();
            }
        }
    }

    /// For example, of a version that was developed from an older one on another branch.
    #[tokio::test]
    async fn a_schema_with_an_unknown_addition_is_not_migrated() {
        let (_directory, databases) = migrated().await;
        for database in databases {
            record(&database, "9999_add_column").await;
            let delete = "DELETE FROM _sqlx_migrations WHERE version = 2";
            database.execute_unprepared(delete).await.unwrap();
            assert_refused_for(Some("9999_add_column"), &database).await;
        }
    }

    #[tokio::test]
    async fn what_a_former_program_has_applied_is_not_applied_again() {
        let (_directory, databases) = migrated().await;
        for database in databases {
            let applied = migrations::applied(&database).await.unwrap();
            let rows: Vec<_> = applied
                .iter()
                .map(|name| format!("('m{name}', 0)"))
                .collect();
            let records = format!(
                "DROP TABLE _sqlx_migrations;
                CREATE TABLE seaql_migrations (version varchar PRIMARY KEY, applied_at bigint);
                INSERT INTO seaql_migrations VALUES {}",
                rows.join(", ")
            );
            database.execute_unprepared(&records).await.unwrap();
            assert!(!migrations::is_empty(&database).await.unwrap());
            assert_eq!(migrations::applied(&database).await.unwrap(), applied);

            migrate(&database).await.unwrap();

            let last = applied.last().unwrap();
            let drop = "DROP TABLE audit_events";
            let remove = format!("DELETE FROM seaql_migrations WHERE version = 'm{last}'; {drop}");
            database.execute_unprepared(&remove).await.unwrap();
            let pending = migrations::pending(&database).await.unwrap();
            assert_eq!(pending, std::slice::from_ref(last));

            migrate(&database).await.unwrap();

            assert_eq!(migrations::applied(&database).await.unwrap(), applied);
            database.execute_unprepared(drop).await.unwrap();
        }
    }

    #[tokio::test]
    async fn the_queues_are_vacuumed_when_a_hundredth_is_dead() {
        let Some(storage) = crate::fixture::postgres().await else {
            return;
        };
        let select = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
            WHERE relkind = 'r' AND 'autovacuum_vacuum_scale_factor=0.01' = ANY(reloptions)";
        let tables: String = crate::rows::value(storage.reader(), select).await.unwrap();
        assert_eq!(
            tables,
            "attempts events idempotency_keys notifications task_change_queue task_changes"
        );
    }

    #[tokio::test]
    async fn an_index_is_created_outside_a_transaction_and_again_if_it_could_not_be_built() {
        let (_directory, databases) = migrated().await;
        for database in databases {
            let backend = database.get_database_backend();
            let create = "-- no-transaction\n\
                CREATE INDEX CONCURRENTLY IF NOT EXISTS later ON stores (country)";
            if backend == DbBackend::Postgres {
                // As a core leaves it that ends while it builds the index.
                let invalid = "CREATE INDEX later ON stores (country);
                    UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'later'::regclass";
                database.execute_unprepared(invalid).await.unwrap();
            }
            let index = migrations::migration(backend, "9000_add_index", create);
            let all = migrations::migrator(backend);
            let all = all.iter().cloned().chain([index]).collect();
            let mut all = Migrator::with_migrations(all);
            all.set_locking(false);

            database.migrate(&all, 9000).await.unwrap();

            let applied = migrations::applied(&database).await.unwrap();
            assert_eq!(applied.last().unwrap(), "9000_add_index");
            if backend == DbBackend::Postgres {
                let select = "SELECT indisvalid FROM pg_index
                    WHERE indexrelid = 'later'::regclass";
                assert!(crate::rows::value::<bool>(&database, select).await.unwrap());
            }
        }
    }
}
