//! Kills at random moments under load: nothing acknowledged is lost, and every completion is
//! notified.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use crate::{
    all_in_one::AllInOne,
    caller::Caller,
    checker::{self, RECOVERY_TIMEOUT},
    cluster::{Cluster, EXPIRE_LEASES},
    counting_receiver::CountingReceiver,
    event_log::{EventLog, Follower},
    fault::{Fault, Faults},
    load::Load,
    one_processor,
    random::{Random, configured_duration},
};

/// The duration of a test, unless configured.
const DEFAULT_DURATION: Duration = Duration::from_secs(8);

/// The maximum number of successful requests between two kills.
const MAX_REQUESTS_BETWEEN_KILLS: u64 = 120;

/// The fewest kills of the all-in-one.
const MIN_KILLS: usize = 8;

/// The creators and the completers of the test without a webhook.
const WORKERS: usize = 8;

/// Longer than a lease of a minute and the five seconds between checks for expired leases: what
/// was leased and never reported is sent again by then.
const LEASE_TIMEOUT: Duration = Duration::from_secs(70);

/// How long to wait for notifications that need no lease to expire.
const IN_FLIGHT_TIMEOUT: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_all_in_one_loses_nothing_when_it_is_killed() {
    let _processor = one_processor().await;
    let mut random = Random::seeded();
    let mut platform = AllInOne::start().await;
    let (shop, board) = (platform.shop().await, platform.dispatch_board().await);
    let mut test = KillTest::start(shop, &board, platform.shop().await, &mut random).await;

    while test.is_time_left() || test.outages.0.len() < MIN_KILLS {
        test.wait_before_fault(&mut random).await;
        let killed = Instant::now();
        platform.server.kill();
        platform.server.start().await;
        let outage = test.load.first_success_after(killed).await;
        test.recovered("all-in-one", outage).await;
    }

    test.verify("SQLite", |statement| platform.sql(statement))
        .await;
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
}

/// Every fault occurs at least once, in random order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_services_lose_nothing_when_any_of_them_is_killed() {
    let _processor = one_processor().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let mut random = Random::seeded();
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let mut test = KillTest::start(shop, &board, cluster.shop().await, &mut random).await;

    let kinds = [Fault::OF_REQUESTS, Fault::OF_NOTIFICATIONS].concat();
    let min_faults = kinds.len();
    let mut faults = Faults::of(kinds);
    while test.is_time_left() || test.outages.0.len() < min_faults {
        test.wait_before_fault(&mut random).await;
        let fault = faults.next(&mut random);
        let outage = Cell::new(Duration::ZERO);
        let wait = async |since| outage.set(test.outage_after(fault, since).await);
        fault.inject(&mut cluster, wait).await;
        test.recovered(&format!("{fault:?}"), outage.get()).await;
    }

    test.verify("PostgreSQL", |statement| cluster.postgres.query(statement))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completions_without_a_webhook_are_logged_once_when_cores_are_killed() {
    let _processor = one_processor().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let mut random = Random::seeded();
    let shop = cluster.shop().await;
    let load = Load::start(WORKERS, &shop, &cluster.dispatch_board().await);

    for kill in 0..MIN_KILLS {
        load.wait_for_successes(1 + random.below(MAX_REQUESTS_BETWEEN_KILLS))
            .await;
        let killed = Instant::now();
        let core = &mut cluster.cores[kill % 2];
        core.kill();
        core.start().await;
        load.first_success_after(killed).await;
    }

    let (acknowledged, failures) = load.finish().await;
    let not_subscribed = CountingReceiver::start().await;
    let query = |statement: &str| cluster.postgres.query(statement);
    let verified = checker::verify(
        &acknowledged,
        &shop,
        &not_subscribed,
        query,
        RECOVERY_TIMEOUT,
    );
    let mut figures = verified.await;
    assert_eq!(figures.defects.not_notified, figures.completed);
    figures.defects.not_notified = 0;
    crate::report(&format!("PostgreSQL, no webhook: {figures}"));
    figures.assert_nothing_lost();
    for failure in &failures {
        assert!(failure.is_expected_after_a_kill(), "{failure}");
    }
}

/// Load, a receiver, a reader of the event log, and the outages observed so far.
struct KillTest {
    shop: Caller,
    receiver: CountingReceiver,
    follower: Follower,
    workers: usize,
    load: Load,
    outages: Outages,
    started: Instant,
}

impl KillTest {
    /// `reader` is a client of the shop's with connections of its own.
    async fn start(shop: Caller, board: &Caller, reader: Caller, random: &mut Random) -> Self {
        let receiver = CountingReceiver::subscribed(&shop).await;
        let workers = 4 + usize::try_from(random.below(13)).unwrap();
        let load = Load::start(workers, &shop, board);
        // The second shows that the first has an outcome: until then, a receiver gets one at a time,
        // and a dispatcher killed with it would keep it for the time of a lease.
        let has_received = receiver.wait(RECOVERY_TIMEOUT, |received| received.total > 1);
        assert!(has_received.await);
        Self {
            load,
            follower: Follower::start(reader),
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

    async fn wait_before_fault(&self, random: &mut Random) {
        let requests = 1 + random.below(MAX_REQUESTS_BETWEEN_KILLS);
        self.load.wait_for_successes(requests).await;
    }

    /// The time to the next successful request; after the kill of a dispatcher, to the next
    /// notification.
    async fn outage_after(&self, fault: Fault, since: Instant) -> Duration {
        if !Fault::OF_NOTIFICATIONS.contains(&fault) {
            return self.load.first_success_after(since).await;
        }
        let before = self.receiver.received().total;
        let has_received = self
            .receiver
            .wait(RECOVERY_TIMEOUT, |received| received.total > before);
        assert!(has_received.await);
        since.elapsed()
    }

    /// Records an outage, and checks the event log after it.
    async fn recovered(&mut self, victim: &str, outage: Duration) {
        self.outages.push(victim, outage);
        self.follower.assert_no_gap_after(Instant::now()).await;
    }

    /// Asserts that nothing acknowledged was lost or duplicated, and that every completion was
    /// notified; with a configured duration, also that nothing more happens for the time of a lease.
    async fn verify(mut self, platform: &str, query: impl Fn(&str) -> String) {
        let (acknowledged, failures) = self.load.finish().await;
        let completed = acknowledged.completed();
        if configured_duration().is_none() {
            self.receiver
                .wait(IN_FLIGHT_TIMEOUT, |received| {
                    received.missing(&completed).is_empty()
                })
                .await;
            query(EXPIRE_LEASES);
        }
        let timeout = configured_duration().map_or(RECOVERY_TIMEOUT, |_| LEASE_TIMEOUT);
        let verify = async |timeout| {
            checker::verify(&acknowledged, &self.shop, &self.receiver, &query, timeout).await
        };
        let figures = verify(timeout).await;
        crate::report(&format!(
            "{platform}, {} creators and completers each: {}; failed requests: {}; {figures}",
            self.workers,
            self.outages,
            failures.len()
        ));
        figures.assert_nothing_lost();
        for failure in &failures {
            assert!(failure.is_expected_after_a_kill(), "{failure}");
        }
        let followed = self.follower.assert_no_gap_after(Instant::now()).await;
        assert_eq!(followed, EventLog::read(&self.shop).await);

        if configured_duration().is_some() {
            tokio::time::sleep(LEASE_TIMEOUT).await;
            assert_eq!(verify(Duration::ZERO).await, figures);
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
