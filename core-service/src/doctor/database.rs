//! Checks of the database, of its clock, and of the master keys.

use std::sync::OnceLock;

use jiff::SignedDuration;
use process::clock::Clock;
use storage::Inspection;

use super::finding::{Check, FIRST_START, Finding};
use crate::{
    auth::access_token::MAX_CLOCK_SKEW,
    config::Config,
    readiness::CLOCK_DIFFERENCE,
    secrets::master_keys::{self, MasterKeys},
    start_error::StartError,
    startup::{require_keys, unusable_master_key},
};

/// The first version that is supported, as the server writes it.
const OLDEST_POSTGRES: i32 = 150_000;

pub(super) async fn check(config: &'static Config) -> Vec<Check> {
    // Leaked: a check that timed out still runs, and may use it.
    let opened: &'static OnceLock<Inspection> = Box::leak(Box::default());
    let mut checks = vec![Check::run("database", open(config, opened)).await];
    let Some(database) = opened.get() else {
        checks.push(Check::run("master key", master_key(config, None)).await);
        let unopened = ["database settings", "database file", "migrations", "clock"];
        checks.extend(unopened.map(|name| Check {
            name: name.to_owned(),
            finding: Finding::skipped("the database is not open"),
        }));
        return checks;
    };
    let (key, settings, file, migrations, clock) = tokio::join!(
        Check::run("master key", master_key(config, Some(database))),
        Check::run("database settings", settings(config, database)),
        Check::run("database file", file(database)),
        Check::run("migrations", migrations(config, database)),
        Check::run("clock", clock(database)),
    );
    checks.extend([key, settings, file, migrations, clock]);
    checks
}

async fn open(config: &Config, opened: &OnceLock<Inspection>) -> Result<Finding, StartError> {
    match Inspection::open(&config.database_url()?).await? {
        Some(database) => {
            let version = database.version().await?;
            opened.get_or_init(|| database);
            Ok(Finding::ok(version))
        }
        None if config.all_in_one => Ok(Finding::warning("there is none yet", FIRST_START)),
        None => Err(StartError::NotBootstrapped),
    }
}

async fn settings(config: &Config, database: &Inspection) -> Result<Finding, StartError> {
    let Some(server) = database.server().await? else {
        return Ok(Finding::skipped("SQLite is set up by the platform"));
    };
    if server.version < OLDEST_POSTGRES {
        return Ok(Finding::failure(
            "PostgreSQL is older than version 15",
            "upgrade it to 15 or newer",
        ));
    }
    let mut problems = Vec::new();
    let (permitted, configured) = (server.connections, config.database_connections);
    // A core has one more while it starts.
    if u32::try_from(permitted).unwrap_or_default() <= configured {
        problems.push((
            format!("PostgreSQL permits {permitted} connections, and each core opens {configured}"),
            "raise max_connections (or the limit of the role or the database), or lower --database-connections",
        ));
    }
    if server.is_exposed {
        problems.push((
            "the connection to another host is not encrypted".to_owned(),
            "set sslmode=verify-full in the database URL",
        ));
    }
    let isolation = server.isolation;
    if isolation != "read committed" {
        problems.push((
            format!("transactions have the isolation {isolation}, and are retried more often"),
            "set default_transaction_isolation = 'read committed'",
        ));
    }
    if problems.is_empty() {
        return Ok(Finding::ok(format!(
            "fsync and synchronous_commit are on, isolation {isolation}, {permitted} connections permitted"
        )));
    }
    let (found, fixes): (Vec<_>, Vec<_>) = problems.into_iter().unzip();
    Ok(Finding::warning(found.join("; "), fixes.join("; ")))
}

async fn file(database: &Inspection) -> Result<Finding, StartError> {
    Ok(match database.check_file().await? {
        Some(file) => Finding::ok(format!("{} is complete and consistent", file.display())),
        None => Finding::skipped("PostgreSQL checks its own files"),
    })
}

async fn migrations(config: &Config, database: &Inspection) -> Result<Finding, StartError> {
    Ok(match database.pending_migrations().await? {
        None if config.all_in_one => Finding::warning("there is no schema yet", FIRST_START),
        None => return Err(StartError::NotBootstrapped),
        Some(pending) if pending.is_empty() => Finding::ok("all are applied"),
        Some(pending) => Finding::warning(
            format!("not applied yet: {}", pending.join(", ")),
            "back up the database, and start a core of this version or run `migrations`",
        ),
    })
}

async fn clock(database: &Inspection) -> Result<Finding, StartError> {
    if database.server().await?.is_none() {
        return Ok(Finding::skipped("there is no other clock to compare with"));
    }
    let clock = Clock::system();
    let ahead = database.health_check().clock_difference(&clock).await?;
    Ok(clock_difference(ahead))
}

fn clock_difference(ahead: SignedDuration) -> Finding {
    let found = format!(
        "this host is {:+.1} s ahead of PostgreSQL",
        ahead.as_secs_f64()
    );
    let fix = "synchronize the clocks of all hosts (NTP): above 30 s, cores reject each other's new tokens";
    if ahead.abs() > SignedDuration::from_secs(MAX_CLOCK_SKEW) {
        Finding::failure(found, fix)
    } else if ahead.abs() > CLOCK_DIFFERENCE {
        Finding::warning(found, fix)
    } else {
        Finding::ok(found)
    }
}

/// The file, and whether it has every key that the database needs.
async fn master_key(config: &Config, database: Option<&Inspection>) -> Result<Finding, StartError> {
    let path = &config.master_key_file;
    let mut signing_keys = Vec::new();
    if let Some(database) = database
        && database.pending_migrations().await?.is_some()
    {
        signing_keys = storage::signing_keys::list(database.reader()).await?;
    }
    let keys = match MasterKeys::read(path) {
        Err(master_keys::Error::Missing { path })
            if config.all_in_one && signing_keys.is_empty() =>
        {
            let missing = format!("{} does not exist yet", path.display());
            return Ok(Finding::warning(missing, FIRST_START));
        }
        read => read.map_err(|error| unusable_master_key(error, config.all_in_one))?,
    };
    let ids: Vec<_> = keys.ids().collect();
    let shown: Vec<_> = ids.iter().map(ToString::to_string).collect();
    let shown = format!("{} ({})", path.display(), shown.join(", "));
    match database {
        Some(database) if !signing_keys.is_empty() => {
            require_keys(database.reader(), &signing_keys, &ids, config).await?;
            Ok(Finding::ok(format!("{shown} has all keys of the database")))
        }
        Some(_) => Ok(Finding::ok(format!(
            "{shown}; the database has no secrets yet"
        ))),
        None => Ok(Finding::ok(format!("{shown}; the database is not open"))),
    }
}

#[cfg(test)]
mod tests {
    use storage::fixture;

    use super::*;
    use crate::{doctor::Status, secrets::secret_box::SecretBox};

    #[test]
    fn clocks_may_differ_by_2_s_and_fail_above_the_tolerance_of_tokens() {
        let above = |seconds| SignedDuration::from_secs(seconds) + SignedDuration::from_millis(1);
        for (ahead, status) in [
            (SignedDuration::ZERO, Status::Ok),
            (SignedDuration::from_secs(2), Status::Ok),
            (above(2), Status::Warning),
            (SignedDuration::from_secs(30), Status::Warning),
            (above(30), Status::Failure),
        ] {
            for ahead in [ahead, -ahead] {
                assert_eq!(clock_difference(ahead).status, status, "{ahead:?}");
            }
        }
        let found = clock_difference(SignedDuration::from_millis(-2500)).found;
        assert_eq!(found, "this host is -2.5 s ahead of PostgreSQL");
    }

    #[tokio::test]
    async fn a_database_without_a_schema_is_a_failure_unless_a_start_creates_it() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("delivery.sqlite"), "").unwrap();
        let database = Inspection::open(&fixture::url(&directory)).await.unwrap();
        let database = database.unwrap();
        let mut config = Config::default();
        let separate = migrations(&config, &database).await;
        config.all_in_one = true;
        let all_in_one = migrations(&config, &database).await.unwrap();

        assert!(matches!(separate, Err(StartError::NotBootstrapped)));
        assert_eq!(all_in_one.status, Status::Warning);
        assert_eq!(all_in_one.found, "there is no schema yet");
    }

    #[tokio::test]
    async fn the_keys_of_a_database_without_secrets_are_not_compared() {
        let (directory, storage) = fixture::sqlite().await;
        let config = Config {
            master_key_file: directory.path().join("master.key"),
            ..Config::default()
        };
        SecretBox::open_or_create(&config.master_key_file).unwrap();
        let database = Inspection::open(&fixture::url(&directory)).await.unwrap();

        let finding = master_key(&config, database.as_ref()).await.unwrap();

        assert_eq!(finding.status, Status::Ok);
        let secrets = "; the database has no secrets yet";
        assert!(finding.found.ends_with(secrets), "{}", finding.found);
        drop(storage);
    }
}
