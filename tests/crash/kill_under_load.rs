//! Kills at random moments under load: nothing acknowledged is lost, and every completion is
//! notified.

use std::time::{Duration, Instant};

use crate::{
    ONE_AT_A_TIME,
    all_in_one::AllInOne,
    caller::Caller,
    cluster::Cluster,
    load::Load,
    oracle::{self, RECOVERY_TIMEOUT},
    random::{Random, configured_duration},
    receiver::Receiver,
};

/// The duration of a test, unless configured.
const DEFAULT_DURATION: Duration = Duration::from_secs(8);

/// The maximum number of successful requests between two kills.
const MAX_REQUESTS_BETWEEN_KILLS: u64 = 120;

/// Longer than a lease of a minute and the five seconds between checks for expired leases.
const LEASE_TIMEOUT: Duration = Duration::from_secs(90);

/// The time for notifications that wait for no lease.
const IN_FLIGHT_TIMEOUT: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_all_in_one_loses_nothing_when_it_is_killed() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut random = Random::seeded();
    let mut platform = AllInOne::start().await;
    let callers = (platform.shop().await, platform.dispatch_board().await);
    let mut test = KillTest::start(callers, &mut random).await;

    while test.is_time_left() {
        test.load
            .wait_for_successes(1 + random.below(MAX_REQUESTS_BETWEEN_KILLS))
            .await;
        let killed = Instant::now();
        platform.server.kill();
        platform.server.start().await;
        let outage = test.load.first_success_after(killed).await;
        test.outages.push("all-in-one", outage);
    }

    test.verify("SQLite", || platform.expire_leases()).await;
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
}

/// A fault of a cluster.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Gateway(usize),
    Core(usize),
    Dispatcher(usize),
    /// `kill -9` of the postmaster.
    Postgres,
    /// `pg_ctl stop -m immediate`.
    PostgresImmediately,
    /// Terminates every connection, several times.
    Connections,
}

const FAULTS: [Fault; 9] = [
    Fault::Gateway(0),
    Fault::Gateway(1),
    Fault::Core(0),
    Fault::Core(1),
    Fault::Postgres,
    Fault::PostgresImmediately,
    Fault::Connections,
    // A killed dispatcher leaves leases of a minute.
    Fault::Dispatcher(0),
    Fault::Dispatcher(1),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_services_lose_nothing_when_any_of_them_is_killed() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let mut random = Random::seeded();
    let callers = (cluster.shop().await, cluster.dispatch_board().await);
    let mut test = KillTest::start(callers, &mut random).await;

    while test.is_time_left() {
        test.load
            .wait_for_successes(1 + random.below(MAX_REQUESTS_BETWEEN_KILLS))
            .await;
        let fault = random.choose(&FAULTS);
        let outage = inject(&mut cluster, fault, &test.load, &test.receiver).await;
        test.outages.push(&format!("{fault:?}"), outage);
    }

    test.verify("PostgreSQL", || cluster.expire_leases()).await;
}

/// Load, a receiver, and the outages observed so far.
struct KillTest {
    shop: Caller,
    receiver: Receiver,
    workers: usize,
    load: Load,
    outages: Outages,
    started: Instant,
}

impl KillTest {
    async fn start((shop, board): (Caller, Caller), random: &mut Random) -> Self {
        let receiver = Receiver::start().await;
        shop.subscribe(receiver.url()).await;
        let workers = 4 + usize::try_from(random.below(13)).unwrap();
        Self {
            load: Load::start(workers, &shop, &board),
            shop,
            receiver,
            workers,
            outages: Outages::default(),
            started: Instant::now(),
        }
    }

    fn is_time_left(&self) -> bool {
        self.started.elapsed() < configured_duration().unwrap_or(DEFAULT_DURATION)
    }

    /// Asserts that nothing acknowledged was lost or duplicated and every completion was notified.
    async fn verify(self, platform: &str, expire_leases: impl FnOnce()) {
        let (acknowledged, failures) = self.load.finish().await;
        if configured_duration().is_none() {
            self.receiver
                .wait(IN_FLIGHT_TIMEOUT, |received| {
                    received.missing(&acknowledged.completed).is_empty()
                })
                .await;
            expire_leases();
        }
        let timeout = configured_duration().map_or(RECOVERY_TIMEOUT, |_| LEASE_TIMEOUT);
        let figures = oracle::verify(&acknowledged, &self.shop, &self.receiver, timeout).await;
        crate::report(&format!(
            "{platform}, {} creators and completers each: {}; failed requests: {}; {figures}",
            self.workers,
            self.outages,
            failures.len()
        ));
        figures.assert_nothing_lost(2 * figures.deliveries);
        for failure in &failures {
            assert!(failure.is_expected_after_a_kill(), "{failure}");
        }
    }
}

/// Injects a fault and repairs it; returns the time to the next successful request or notification.
/// A process with a replica is restarted only then: the replica must serve until then.
async fn inject(cluster: &mut Cluster, fault: Fault, load: &Load, receiver: &Receiver) -> Duration {
    let injected = Instant::now();
    match fault {
        Fault::Gateway(number) | Fault::Core(number) => {
            let server = match fault {
                Fault::Gateway(_) => &mut cluster.gateways[number],
                _ => &mut cluster.cores[number],
            };
            server.kill();
            let outage = load.first_success_after(injected).await;
            server.start().await;
            outage
        }
        Fault::Dispatcher(number) => {
            let server = &mut cluster.dispatchers[number];
            server.kill();
            let before = receiver.received().total;
            assert!(
                receiver
                    .wait(RECOVERY_TIMEOUT, |received| received.total > before)
                    .await
            );
            let outage = injected.elapsed();
            server.start().await;
            outage
        }
        Fault::Postgres | Fault::PostgresImmediately => {
            match fault {
                Fault::Postgres => cluster.postgres.kill(),
                _ => cluster.postgres.stop_immediately(),
            }
            cluster.postgres.restart();
            load.first_success_after(injected).await
        }
        Fault::Connections => {
            for _ in 0..5 {
                cluster.postgres.terminate_backends();
                load.wait_for_successes(5).await;
            }
            cluster.postgres.terminate_backends();
            load.first_success_after(Instant::now()).await
        }
    }
}

/// The duration of each outage, by victim.
#[derive(Default)]
struct Outages(Vec<(String, Duration)>);

impl Outages {
    fn push(&mut self, victim: &str, outage: Duration) {
        self.0.push((victim.to_owned(), outage));
    }
}

impl std::fmt::Display for Outages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} kills, first success after", self.0.len())?;
        let mut victims: Vec<_> = self.0.iter().map(|(victim, _)| victim).collect();
        victims.sort_unstable();
        victims.dedup();
        for victim in victims {
            let mut outages: Vec<_> = self
                .0
                .iter()
                .filter(|(other, _)| other == victim)
                .map(|(_, outage)| outage.as_millis())
                .collect();
            outages.sort_unstable();
            let (median, maximum) = (outages[outages.len() / 2], outages[outages.len() - 1]);
            write!(
                f,
                " {victim} ×{}: {median} ms (maximum {maximum})",
                outages.len()
            )?;
        }
        Ok(())
    }
}
