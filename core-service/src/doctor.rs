//! What a core needs, checked for `delivery doctor`. The checks change nothing: they run beside cores
//! that use the same database.

use std::time::Duration;

use futures_util::{FutureExt as _, future::BoxFuture};
use jiff::SignedDuration;
use process::{
    clock::Clock,
    logs::error_message,
    tls::{EXPIRY_NOTICE, certificates, not_after},
};
use storage::Inspection;
use tokio::time::timeout;

use crate::{
    auth::access_token::MAX_CLOCK_SKEW,
    config::{Config, TlsConfig},
    readiness::CLOCK_DIFFERENCE,
    secrets::master_keys::{self, MasterKeys},
    startup::{StartError, require_keys, unusable_master_key},
};

const TIMEOUT: Duration = Duration::from_secs(10);

/// The fix if something is missing that the all-in-one creates at its first start.
const FIRST_START: &str =
    "start `delivery`, which creates it, or name the platform's directory with --data-dir";

#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    pub finding: Finding,
}

#[derive(Debug)]
pub struct Finding {
    pub status: Status,
    pub found: String,
    /// `None` for the errors of a start, whose messages contain it.
    pub fix: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    /// The platform serves, but less well than it could, or will soon fail.
    Warning,
    /// The platform does not start, or does not serve.
    Failure,
}

impl Check {
    async fn run(
        name: &'static str,
        finding: impl Future<Output = Result<Finding, StartError>>,
    ) -> Self {
        let finding = match timeout(TIMEOUT, finding).await {
            Ok(Ok(finding)) => finding,
            Ok(Err(error)) => Finding {
                status: Status::Failure,
                found: error_message(&error.into()),
                fix: None,
            },
            Err(_) => Finding::failure(
                format!("there is no result within {TIMEOUT:?}"),
                "check whether the disk and the database respond",
            ),
        };
        Self { name, finding }
    }
}

impl Finding {
    fn ok(found: impl Into<String>) -> Self {
        Self {
            status: Status::Ok,
            found: found.into(),
            fix: None,
        }
    }

    fn warning(found: impl Into<String>, fix: &'static str) -> Self {
        Self {
            status: Status::Warning,
            found: found.into(),
            fix: Some(fix),
        }
    }

    fn failure(found: impl Into<String>, fix: &'static str) -> Self {
        Self {
            status: Status::Failure,
            ..Self::warning(found, fix)
        }
    }
}

/// Checks the database, its schema and its clock, the master keys, and the certificate of the gRPC API.
/// Without a database, schema and clock are not checked.
pub fn check(config: &Config) -> BoxFuture<'_, Vec<Check>> {
    async move {
        let mut database = None;
        let mut checks = vec![Check::run("database", open(config, &mut database)).await];
        if let Some(database) = &database {
            checks.push(Check::run("migrations", migrations(config, database)).await);
            checks.push(Check::run("clock", clock(database)).await);
        }
        checks.push(Check::run("master key", master_key(config, database.as_ref())).await);
        let certificate = async { certificate(&config.tls) };
        checks.push(Check::run("gRPC certificate", certificate).await);
        checks
    }
    .boxed()
}

async fn open(config: &Config, opened: &mut Option<Inspection>) -> Result<Finding, StartError> {
    *opened = Inspection::open(&config.database_url()?).await?;
    match opened {
        Some(_) => Ok(Finding::ok("it accepts writes")),
        None if config.all_in_one => Ok(Finding::warning("there is none yet", FIRST_START)),
        None => Err(StartError::NotBootstrapped),
    }
}

async fn migrations(config: &Config, database: &Inspection) -> Result<Finding, StartError> {
    Ok(match database.pending_migrations().await? {
        None if config.all_in_one => Finding::warning("there is no schema yet", FIRST_START),
        None => return Err(StartError::NotBootstrapped),
        Some(pending) if pending.is_empty() => Finding::ok("all are applied"),
        Some(pending) => Finding::warning(
            format!("not applied yet: {}", pending.join(", ")),
            "back up the database, and start a core of this version or run `delivery migrate`",
        ),
    })
}

async fn clock(database: &Inspection) -> Result<Finding, StartError> {
    let ahead = database.clock_difference(&Clock::system()).await?;
    Ok(ahead.map_or_else(
        || Finding::ok("SQLite has no clock of its own"),
        clock_difference,
    ))
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
    let mut signing_keys = Vec::new();
    if let Some(database) = database
        && database.pending_migrations().await?.is_some()
    {
        signing_keys = storage::signing_keys::list(database.reader()).await?;
    }
    let keys = match MasterKeys::read(&config.master_key_file) {
        Err(master_keys::Error::Missing { path })
            if config.all_in_one && signing_keys.is_empty() =>
        {
            let missing = format!("{} does not exist yet", path.display());
            return Ok(Finding::warning(missing, FIRST_START));
        }
        read => read.map_err(|error| unusable_master_key(error, config.all_in_one))?,
    };
    let ids: Vec<_> = keys.ids().collect();
    let path = config.master_key_file.display();
    let compared = match database {
        Some(database) if !signing_keys.is_empty() => {
            require_keys(database.reader(), &signing_keys, &ids, config).await?;
            "has all keys of the database"
        }
        Some(_) => "is valid; the database has no secrets yet",
        None => "is valid; the database is not open",
    };
    Ok(Finding::ok(format!("{path} {compared}")))
}

/// The certificate, whose files are opened as at the start of a core, and its expiry.
fn certificate(tls: &TlsConfig) -> Result<Finding, StartError> {
    let Some(files) = tls.files() else {
        return Ok(Finding::ok("none: the gRPC API has no TLS"));
    };
    tls.open()?;
    let chain = certificates(&files.certificate)?;
    let path = files.certificate.display();
    let Some(end) = chain.first().and_then(|first| not_after(first)) else {
        return Ok(Finding::ok(format!("{path} is valid")));
    };
    let left = end.duration_since(Clock::system().now());
    Ok(if left.is_negative() {
        Finding::failure(format!("{path} expired at {end}"), "renew it")
    } else if left < EXPIRY_NOTICE {
        Finding::warning(format!("{path} is valid until {end}"), "renew it")
    } else {
        Finding::ok(format!("{path} is valid until {end}"))
    })
}

#[cfg(test)]
mod tests {
    use storage::fixture;

    use super::*;
    use crate::secrets::secret_box::SecretBox;

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
