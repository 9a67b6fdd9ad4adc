//! Cores behind `PgBouncer` in transaction mode, which gives a session of PostgreSQL to another
//! connection after each transaction.

use std::process::Command;

use crate::{
    checker,
    cluster::Cluster,
    counting_receiver::CountingReceiver,
    load::Load,
    one_processor,
    pgbouncer::PgBouncer,
    postgres::Postgres,
    program,
    startup_errors::{Fixture, assert_error, migrate},
};

/// Enough for each core to use each session many times.
const REQUESTS: u64 = 500;

/// For two cores, which open up to 40 connections to `PgBouncer`.
const TWO_SESSIONS: &str = "default_pool_size = 2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cores_that_share_two_sessions_lose_and_repeat_nothing() {
    let _processor = one_processor().await;
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let Some(pgbouncer) = PgBouncer::start(postgres.directory(), TWO_SESSIONS) else {
        return;
    };
    let cluster = Cluster::start_on(postgres, &pgbouncer.url("postgres")).await;
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = CountingReceiver::subscribed(&shop).await;

    let load = Load::start(8, &shop, &board);
    load.wait_for_successes(REQUESTS).await;
    let sessions = cluster.postgres.query(
        "SELECT count(*) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    );
    let (acknowledged, failures) = load.finish().await;
    let query = |statement: &str| cluster.postgres.query(statement);
    let timeout = checker::RECOVERY_TIMEOUT;
    let figures = checker::verify(&acknowledged, &shop, &receiver, query, timeout).await;

    crate::report(&format!(
        "two cores that share two sessions: failed requests: {}; {figures}",
        failures.len()
    ));
    figures.assert_nothing_lost();
    assert_eq!((figures.repeats, &*sessions), (0, "2"));
    // The load retries failed requests. On a busy machine, some fail.
    for failure in &failures {
        assert!(failure.is_retryable(), "{failure}");
    }
}

#[test]
fn a_start_behind_a_pooler_with_an_unsuitable_url_or_settings_fails_with_an_explanation() {
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let start = |settings: &str| PgBouncer::start(postgres.directory(), settings);
    let Some(pgbouncer) = start(TWO_SESSIONS) else {
        return;
    };
    let fixture = Fixture::new();
    let with_url = |mut command: Command, url: &str| {
        command.env("DELIVERY_DATABASE_URL", url);
        command
    };
    let key = format!("--master-key-file={}", fixture.path("pooled.key"));
    let mut bootstrap = with_url(fixture.core(), &pgbouncer.url("postgres"));
    program::json(bootstrap.args(["bootstrap", &key]));

    // Ends the sessions of `bootstrap`: their prepared statements would make every start fail.
    postgres.terminate_backends();

    let url = pgbouncer.url_without_parameter("postgres");
    let explanation = "a pooler gives several clients the same session of PostgreSQL (prepared statement \"sqlx_s_1\" already exists): append statement-cache-capacity=0 to the database's URL; or use PgBouncer in session mode, or from 1.21 on with max_prepared_statements";
    let mut core = with_url(fixture.core(), &url);
    let message = format!("core-service: cannot open the database: {explanation}");
    assert_error(core.arg(&key), 1, &message);
    // The core's statement is still in the session.
    assert_error(&mut with_url(migrate(), &url), 1, explanation);

    let Some(pgbouncer) = start("ignore_startup_parameters =") else {
        return;
    };
    let mut core = with_url(fixture.core(), &pgbouncer.url("postgres"));
    let message = format!(
        "core-service: cannot open the database: the pooler at {} refuses the connection (unsupported startup parameter: extra_float_digits): add the parameter to ignore_startup_parameters in pgbouncer.ini",
        pgbouncer.directory()
    );
    assert_error(core.arg(&key), 1, &message);
}
