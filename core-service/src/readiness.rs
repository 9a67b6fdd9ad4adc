//! Whether a core is ready: for `/readyz`, and for `grpc.health.v1`, by which gateways choose
//! cores.

use std::{sync::Arc, time::Duration};

use geocoding::{Gazetteer, GeocoderSpec};
use jiff::SignedDuration;
use process::{clock::Clock, health::Readiness, logs::error_chain};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic_health::{ServingStatus, server::HealthReporter};

use storage::{HealthCheck, Storage};

use crate::{config::Config, error::GEOCODING_REMEDY};

/// Timeout of the database check: probes are answered within a second.
const DATABASE_TIMEOUT: Duration = Duration::from_millis(700);

/// How often [`CoreReadiness::report`] checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How often the clock is compared with the database's.
const CLOCK_CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The difference of clocks above which it is logged. Tokens tolerate fifteen times as much.
pub(crate) const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_secs(2);

/// A core is ready if its database accepts writes, texts can be geocoded, and it is not shutting
/// down.
pub(crate) struct CoreReadiness {
    database: HealthCheck,
    clock: Clock,
    /// The only geocoder, if it is the gazetteer.
    gazetteer: Option<Arc<Gazetteer>>,
    shutdown: CancellationToken,
}

impl CoreReadiness {
    pub(crate) fn new(
        storage: &Storage,
        clock: Clock,
        gazetteer: &Arc<Gazetteer>,
        config: &Config,
        shutdown: CancellationToken,
    ) -> Self {
        let geocoders = &config.geocoding.geocoders;
        // With an HTTP geocoder or none, a core is ready without addresses of its own.
        let is_only_geocoder = geocoders
            .iter()
            .all(|geocoder| *geocoder == GeocoderSpec::Gazetteer);
        Self {
            database: storage.health_check(),
            clock,
            gazetteer: is_only_geocoder.then(|| Arc::clone(gazetteer)),
            shutdown,
        }
    }

    /// Reports to gRPC health checks and logs each change. Does not end.
    pub(crate) async fn report(&self, health: HealthReporter) {
        let mut reports = Reports::default();
        let mut clock_check = Instant::now();
        loop {
            let ready = self.check().await;
            if let Some(ready) = reports.changed(ready, self.shutdown.is_cancelled()) {
                let status = match ready {
                    Ok(()) => ServingStatus::Serving,
                    Err(_) => ServingStatus::NotServing,
                };
                health.set_service_status("", status).await;
                match ready {
                    Ok(()) => tracing::info!("ready"),
                    Err(reason) => tracing::warn!("not ready: {reason}"),
                }
            }
            if clock_check <= Instant::now() {
                self.check_clock().await;
                clock_check = Instant::now() + CLOCK_CHECK_INTERVAL;
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    async fn check_database(&self) -> Result<(), String> {
        match tokio::time::timeout(DATABASE_TIMEOUT, self.database.run()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(storage::Error::Misconfigured(reason) | storage::Error::NotReady(reason))) => {
                Err(reason)
            }
            Ok(Err(error)) => {
                tracing::debug!(error = %error_chain(&error), "the database does not respond");
                Err("the database does not respond".to_owned())
            }
            Err(_) => Err(format!(
                "the database did not respond within {DATABASE_TIMEOUT:?}"
            )),
        }
    }

    async fn check_addresses(&self) -> Result<(), String> {
        let Some(gazetteer) = self.gazetteer.clone() else {
            return Ok(());
        };
        match tokio::task::spawn_blocking(move || gazetteer.check()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{error}; {GEOCODING_REMEDY}")),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn check_clock(&self) {
        let difference = self.database.clock_difference(&self.clock);
        if let Ok(Ok(ahead)) = tokio::time::timeout(DATABASE_TIMEOUT, difference).await
            && ahead.abs() > CLOCK_DIFFERENCE
        {
            tracing::warn!(
                "the clock of this host differs from PostgreSQL's by {:.1} s: synchronize both (NTP); above 30 s cores reject each other's new tokens",
                ahead.as_secs_f64()
            );
        }
    }
}

impl Readiness for CoreReadiness {
    async fn check(&self) -> Result<(), String> {
        if self.shutdown.is_cancelled() {
            return Err("this core is shutting down".to_owned());
        }
        self.check_database().await?;
        self.check_addresses().await
    }
}

/// What was reported. A core that was ready is reported as not ready after two failed checks: under
/// load, one may fail because it waits for a connection.
#[derive(Default)]
struct Reports {
    last: Option<Result<(), String>>,
    has_failed: bool,
}

impl Reports {
    /// Takes the result of a check. Returns it if it is to be reported.
    fn changed(
        &mut self,
        ready: Result<(), String>,
        is_shutting_down: bool,
    ) -> Option<&Result<(), String>> {
        let is_first_failure = !std::mem::replace(&mut self.has_failed, ready.is_err());
        let is_conclusive =
            ready.is_ok() || !is_first_failure || self.last.is_none() || is_shutting_down;
        if !is_conclusive || self.last.as_ref() == Some(&ready) {
            return None;
        }
        self.last = Some(ready);
        self.last.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use storage::fixture;

    use super::*;

    #[test]
    fn a_change_is_reported_once_and_a_failure_from_the_second_check_on() {
        let failed = |reason: &str| Err(reason.to_owned());
        let mut reports = Reports::default();
        for (ready, is_shutting_down, is_reported) in [
            (Ok(()), false, true),
            (Ok(()), false, false),
            (failed("a"), false, false),
            (Ok(()), false, false),
            (failed("a"), false, false),
            (failed("a"), false, true),
            (failed("a"), false, false),
            (failed("b"), false, true),
            (Ok(()), false, true),
            (failed("c"), true, true),
        ] {
            let reported = reports.changed(ready.clone(), is_shutting_down);
            assert_eq!(reported, is_reported.then_some(&ready));
        }
        // A core that starts is not ready until a check has succeeded.
        let first = failed("a");
        let mut reports = Reports::default();
        assert_eq!(reports.changed(first.clone(), false), Some(&first));
    }

    #[tokio::test]
    async fn a_core_that_shuts_down_is_not_ready() {
        let (directory, storage) = fixture::sqlite().await;
        let gazetteer = Gazetteer::new(directory.path().join("addresses.sqlite"));
        let config = Config::default();
        let shutdown = CancellationToken::new();
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let readiness = CoreReadiness::new(
            &storage,
            clock,
            &Arc::new(gazetteer),
            &config,
            shutdown.clone(),
        );
        let readiness = CoreReadiness {
            gazetteer: None,
            ..readiness
        };
        assert_eq!(readiness.check().await, Ok(()));

        shutdown.cancel();

        let reason = readiness.check().await.unwrap_err();
        assert_eq!(reason, "this core is shutting down");
    }
}
