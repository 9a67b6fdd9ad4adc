//! Upgrades and rollbacks under load: the programs of an earlier commit beside the present ones,
//! over one database.
//!
//! `DELIVERY_TEST_PREVIOUS` names the directory of the earlier programs. Without it the present
//! ones take their place, and a statement adds to the schema what a later release could.

use std::{path::PathBuf, sync::LazyLock, time::Duration};

use crate::{
    all_in_one::AllInOne,
    all_processors,
    caller::Caller,
    checker::{self, Figures},
    cluster::Cluster,
    counting_receiver::CountingReceiver,
    exposition::wait_until_cores_are_up,
    failure::Failure,
    load::Load,
    postgres::Postgres,
    program::{self, PROGRAMS, Programs},
    startup_errors::migrate,
};

/// The number of workers that create deliveries, and of those that complete their tasks.
const WORKERS: usize = 6;

/// The number of successful requests between two steps: enough to use both gateways and both cores.
const REQUESTS_BETWEEN_STEPS: u64 = 60;

/// Shorter than a lease: the test fails if a process that ends leaves a notification leased.
const TIMEOUT: Duration = Duration::from_secs(30);

const RECORD_LATER: &str = "INSERT INTO _sqlx_migrations
    (version, description, success, checksum, execution_time)
    VALUES (9999, 'add_later', true, '', 0)";

/// The programs of an earlier commit, in the directory named by `DELIVERY_TEST_PREVIOUS`.
static PREVIOUS: LazyLock<Option<Programs>> = LazyLock::new(|| {
    let directory = PathBuf::from(std::env::var_os("DELIVERY_TEST_PREVIOUS")?);
    Some(Programs {
        delivery: directory.join("delivery"),
        core: directory.join("core-service"),
        gateway: directory.join("rest-gateway"),
        dispatcher: directory.join("webhook-dispatcher"),
    })
});

fn previous() -> &'static Programs {
    PREVIOUS.as_ref().unwrap_or(&PROGRAMS)
}

/// The documented orders of an upgrade and of a rollback, then an upgrade in the order of the
/// rollback, in which new gateways and dispatchers call old cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_and_its_rollback_under_load_lose_and_repeat_nothing_and_fail_no_request() {
    let _processors = all_processors().await;
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let url = postgres.url();
    let mut cluster = Cluster::start_programs(previous(), postgres, &url).await;
    let board = cluster.dispatch_board().await;
    let test = UpgradeTest::start(cluster.shop().await, &board).await;
    let can_roll_back = pending_migrations_only_add(&url);

    let cores_first = [Kind::Core, Kind::Gateway, Kind::Dispatcher];
    let cores_last = [Kind::Dispatcher, Kind::Gateway, Kind::Core];
    test.replace(&mut cluster, &PROGRAMS, cores_first).await;
    if can_roll_back {
        if PREVIOUS.is_none() {
            add_column_to_each_table(&cluster.postgres);
        }
        test.replace(&mut cluster, previous(), cores_last).await;
        test.replace(&mut cluster, &PROGRAMS, cores_last).await;
    }

    let query = |statement: &str| cluster.postgres.query(statement);
    let (figures, failures) = test.finish("PostgreSQL", can_roll_back, query).await;
    assert!(failures.is_empty(), "{failures:#?}");
    figures.assert_nothing_lost();
    assert_eq!(figures.repeats, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_and_its_rollback_of_the_all_in_one_lose_and_repeat_nothing() {
    let _processors = all_processors().await;
    let mut platform = AllInOne::start_build(&previous().delivery).await;
    let board = platform.dispatch_board().await;
    let test = UpgradeTest::start(platform.shop().await, &board).await;
    let can_roll_back = pending_migrations_only_add(&format!(
        "sqlite://{}",
        platform.data_dir.join("delivery.sqlite").display()
    ));

    test.replace_all_in_one(&mut platform, &PROGRAMS).await;
    if can_roll_back {
        if PREVIOUS.is_none() {
            platform.sql("ALTER TABLE deliveries ADD COLUMN added_later TEXT");
            platform.sql(RECORD_LATER);
        }
        test.replace_all_in_one(&mut platform, previous()).await;
        test.replace_all_in_one(&mut platform, &PROGRAMS).await;
    }

    let query = |statement: &str| platform.sql(statement);
    let (figures, failures) = test.finish("SQLite", can_roll_back, query).await;
    for failure in &failures {
        assert!(failure.is_expected_after_a_kill(), "{failure}");
    }
    figures.assert_nothing_lost();
    assert_eq!(figures.repeats, 0);
}

/// Otherwise the earlier programs do not start over the later schema.
fn pending_migrations_only_add(database_url: &str) -> bool {
    let mut list = migrate();
    let output = program::output(list.args(["--dry-run", "--database-url", database_url]));
    let listed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{listed}");
    let count = listed.lines().count() - 1;
    let mut names = listed.lines().take(count);
    names.all(|name| name.split('_').nth(1) == Some("add"))
}

/// Like a migration of a later release, which this one does not know.
fn add_column_to_each_table(postgres: &Postgres) {
    let tables = postgres.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    for table in tables.lines() {
        postgres.sql(&format!("ALTER TABLE {table} ADD COLUMN added_later text"));
    }
    postgres.sql(RECORD_LATER);
}

#[derive(Clone, Copy)]
enum Kind {
    Core,
    Gateway,
    Dispatcher,
}

/// Load on a platform and a receiver of its notifications.
struct UpgradeTest {
    shop: Caller,
    receiver: CountingReceiver,
    load: Load,
}

impl UpgradeTest {
    async fn start(shop: Caller, board: &Caller) -> Self {
        let receiver = CountingReceiver::subscribed(&shop).await;
        let load = Load::start(WORKERS, &shop, board);
        load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;
        Self {
            shop,
            receiver,
            load,
        }
    }

    /// Replaces one process after the other, while the rest serve.
    async fn replace(&self, cluster: &mut Cluster, by: &Programs, order: [Kind; 3]) {
        for kind in order {
            let (servers, program) = match kind {
                Kind::Core => (&mut cluster.cores, &by.core),
                Kind::Gateway => (&mut cluster.gateways, &by.gateway),
                Kind::Dispatcher => (&mut cluster.dispatchers, &by.dispatcher),
            };
            for server in servers {
                let status = server.terminate().await;
                assert_eq!(status.code(), Some(0), "{}", server.name());
                server.set_program(program);
                server.start().await;
                self.load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;
                wait_until_cores_are_up(cluster.gateway_health).await;
            }
        }
    }

    async fn replace_all_in_one(&self, platform: &mut AllInOne, by: &Programs) {
        assert!(platform.server.terminate().await.success());
        platform.server.set_program(&by.delivery);
        platform.server.start().await;
        self.load.wait_for_successes(REQUESTS_BETWEEN_STEPS).await;
    }

    /// Verifies the platform, and reports what was tested.
    async fn finish(
        self,
        database: &str,
        rolled_back: bool,
        query: impl Fn(&str) -> String,
    ) -> (Figures, Vec<Failure>) {
        let (acknowledged, failures) = self.load.finish().await;
        let mut figures =
            checker::verify(&acknowledged, &self.shop, &self.receiver, query, TIMEOUT).await;
        if PREVIOUS.is_some() {
            // Earlier programs may not write this event.
            figures.defects.creation_not_logged = 0;
        }
        let from = match &*PREVIOUS {
            Some(programs) => programs.delivery.display().to_string(),
            None => "the present programs (DELIVERY_TEST_PREVIOUS names no others)".to_owned(),
        };
        let steps = if rolled_back {
            "upgrade, rollback, upgrade"
        } else {
            "upgrade without rollback, which a migration prevents"
        };
        crate::report(&format!(
            "{steps} from {from} over {database}; failed requests: {}; {figures}",
            failures.len()
        ));
        (figures, failures)
    }
}
