//! Killed at any moment, under load, and looked at afterwards: nothing acknowledged is lost, and
//! every completion is told.

use std::time::{Duration, Instant};

use crate::{
    ONE_AT_A_TIME,
    all_in_one::AllInOne,
    caller::Caller,
    cluster::Cluster,
    load::Load,
    oracle::{self, TAKEN_OVER},
    random::{Random, asked_duration},
    receiver::Receiver,
};

/// How long the killing goes on, unless asked otherwise.
const SHORT: Duration = Duration::from_secs(8);

/// How many requests are acknowledged between two kills, at most.
const BETWEEN: u64 = 120;

/// A notification in a process that was killed is told when its lease of a minute ends, which
/// is looked at every five seconds.
const LEASE: Duration = Duration::from_secs(90);

/// What is under way without a lease to wait for is told sooner.
const UNDER_WAY: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_all_in_one_loses_nothing_when_it_is_killed() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let mut random = Random::seeded();
    let mut platform = AllInOne::start().await;
    let callers = (platform.shop().await, platform.dispatch_board().await);
    let mut trial = Trial::begin(callers, &mut random).await;

    while trial.goes_on() {
        trial.load.acknowledges(1 + random.below(BETWEEN)).await;
        let killed = Instant::now();
        platform.server.kill();
        platform.server.start().await;
        let outage = trial.load.first_success_after(killed).await;
        trial.outages.push("all-in-one", outage);
    }

    trial.end("SQLite", || platform.end_leases()).await;
    assert_eq!(platform.sql("PRAGMA integrity_check"), "ok");
}

/// What can be done to a cluster.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Gateway(usize),
    Core(usize),
    Dispatcher(usize),
    /// `kill -9` of the postmaster.
    Postgres,
    /// `pg_ctl stop -m immediate`.
    PostgresImmediately,
    /// Every connection ended, several times.
    Connections,
}

const BLOWS: [Blow; 9] = [
    Blow::Gateway(0),
    Blow::Gateway(1),
    Blow::Core(0),
    Blow::Core(1),
    Blow::Postgres,
    Blow::PostgresImmediately,
    Blow::Connections,
    // A dispatcher that is killed leaves leases behind, for a minute.
    Blow::Dispatcher(0),
    Blow::Dispatcher(1),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_lose_nothing_whichever_of_them_is_killed() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let mut random = Random::seeded();
    let callers = (cluster.shop().await, cluster.dispatch_board().await);
    let mut trial = Trial::begin(callers, &mut random).await;

    while trial.goes_on() {
        trial.load.acknowledges(1 + random.below(BETWEEN)).await;
        let blow = random.choose(&BLOWS);
        let outage = strike(&mut cluster, blow, &trial.load, &trial.receiver).await;
        trial.outages.push(&format!("{blow:?}"), outage);
    }

    trial.end("PostgreSQL", || cluster.end_leases()).await;
}

/// Creators and completers at work, and what they and a receiver are to say of it afterwards.
struct Trial {
    shop: Caller,
    receiver: Receiver,
    workers: usize,
    load: Load,
    outages: Outages,
    begun: Instant,
}

impl Trial {
    async fn begin((shop, board): (Caller, Caller), random: &mut Random) -> Self {
        let receiver = Receiver::start().await;
        shop.subscribe(receiver.url()).await;
        let workers = 4 + usize::try_from(random.below(13)).unwrap();
        Self {
            load: Load::start(workers, &shop, &board),
            shop,
            receiver,
            workers,
            outages: Outages::default(),
            begun: Instant::now(),
        }
    }

    fn goes_on(&self) -> bool {
        self.begun.elapsed() < asked_duration().unwrap_or(SHORT)
    }

    /// Nothing acknowledged was lost or done twice, and every completion was told.
    async fn end(self, what: &str, end_leases: impl FnOnce()) {
        let (acknowledged, failures) = self.load.finish().await;
        if asked_duration().is_none() {
            self.receiver
                .wait(UNDER_WAY, |told| {
                    told.missing(&acknowledged.completed).is_empty()
                })
                .await;
            end_leases();
        }
        let deadline = asked_duration().map_or(TAKEN_OVER, |_| LEASE);
        let figures = oracle::judge(&acknowledged, &self.shop, &self.receiver, deadline).await;
        crate::say(&format!(
            "{what}, {} creators and completers each: {}; failed requests: {}; {figures}",
            self.workers,
            self.outages,
            failures.len()
        ));
        figures.assert_nothing_lost(2 * figures.deliveries);
        for failure in &failures {
            assert!(failure.is_of_a_kill(), "{failure}");
        }
    }
}

/// Strikes and mends; how long it took until a request succeeded, or a notification came. What
/// has a twin is mended only then: until then the twin must do.
async fn strike(cluster: &mut Cluster, blow: Blow, load: &Load, receiver: &Receiver) -> Duration {
    let struck = Instant::now();
    match blow {
        Blow::Gateway(number) | Blow::Core(number) => {
            let server = match blow {
                Blow::Gateway(_) => &mut cluster.gateways[number],
                _ => &mut cluster.cores[number],
            };
            server.kill();
            let outage = load.first_success_after(struck).await;
            server.start().await;
            outage
        }
        Blow::Dispatcher(number) => {
            let server = &mut cluster.dispatchers[number];
            server.kill();
            let before = receiver.so_far().total;
            assert!(receiver.wait(TAKEN_OVER, |told| told.total > before).await);
            let outage = struck.elapsed();
            server.start().await;
            outage
        }
        Blow::Postgres | Blow::PostgresImmediately => {
            match blow {
                Blow::Postgres => cluster.postgres.kill(),
                _ => cluster.postgres.stop_immediately(),
            }
            cluster.postgres.start_again();
            load.first_success_after(struck).await
        }
        Blow::Connections => {
            for _ in 0..5 {
                cluster.postgres.terminate_backends();
                load.acknowledges(5).await;
            }
            cluster.postgres.terminate_backends();
            load.first_success_after(Instant::now()).await
        }
    }
}

/// How long each kill was felt.
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
            let (median, most) = (outages[outages.len() / 2], outages[outages.len() - 1]);
            write!(f, " {victim} ×{}: {median} ms (most {most})", outages.len())?;
        }
        Ok(())
    }
}
