//! Backups by PostgreSQL's own tools, as `docs/postgresql.md` describes.

use std::time::Instant;

use serde_json::json;

use crate::{
    backup::{REQUESTS, WORKERS, path_str, verify_restored},
    checker::RECOVERY_TIMEOUT,
    cluster::{Cluster, EXPIRE_LEASES},
    counting_receiver::CountingReceiver,
    load::Load,
    one_processor,
    postgres::Postgres,
    program::{self, PROGRAMS},
    report,
};

/// Backs up a platform under load, loses it later, and restores it: everything acknowledged before
/// the backup is in it, every completion before it is notified, and none under two ids.
async fn drill(
    name: &str,
    backup: impl FnOnce(&mut Postgres),
    restore: impl FnOnce(&mut Postgres),
) {
    let _processor = one_processor().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = CountingReceiver::subscribed(&shop).await;
    // A backlog: nothing is delivered before the backup.
    receiver.set_responding(false);
    let load = Load::start(WORKERS, &shop, &board);
    load.wait_for_successes(REQUESTS).await;

    verify(&cluster.postgres);
    let before = load.acknowledged();
    let started = Instant::now();
    backup(&mut cluster.postgres);
    let took = started.elapsed();
    load.wait_for_successes(REQUESTS).await;
    receiver.set_responding(true);
    receiver
        .wait(RECOVERY_TIMEOUT, |received| received.total > 0)
        .await;
    drop(load);
    for server in cluster.servers() {
        server.kill();
    }
    restore(&mut cluster.postgres);
    verify(&cluster.postgres);
    for server in cluster.servers() {
        server.start().await;
    }
    // The leases of the lost dispatchers expire after a minute.
    cluster.postgres.query(EXPIRE_LEASES);

    let query = |statement: &str| cluster.postgres.query(statement);
    verify_restored(&before, &cluster.shop().await, &receiver, query).await;
    report(&format!(
        "{name} under the load of {WORKERS} creators and completers in {} ms; before it {} creates, \
         {} completions",
        took.as_millis(),
        before.created.len(),
        before.done.len(),
    ));
}

/// `delivery verify` finds no row that contradicts others, also while cores write.
fn verify(postgres: &Postgres) {
    let mut command = program::command(&PROGRAMS.delivery);
    command.args(["verify", "--json"]);
    let verified = program::json(command.env("DELIVERY_DATABASE_URL", postgres.url()));
    assert_eq!(verified["problems"], json!([]));
    assert!(
        verified["rows"]["deliveries"].as_u64() > Some(0),
        "{verified}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_a_dump_under_load_is_restored_from_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("platform.dump");
    let run = |postgres: &Postgres, program: &str, arguments: &[&str]| {
        let output = program::output(postgres.program(program).args(arguments));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program}: {errors}");
    };
    let dump = |postgres: &mut Postgres| {
        let arguments = ["--format=custom", "--file", path_str(&file), "postgres"];
        run(postgres, "pg_dump", &arguments);
    };
    let restore = |postgres: &mut Postgres| {
        postgres.terminate_backends();
        let rename = "ALTER DATABASE postgres RENAME TO lost";
        run(
            postgres,
            "psql",
            &["--dbname=template1", "--command", rename],
        );
        run(
            postgres,
            "createdb",
            &["--maintenance-db=template1", "postgres"],
        );
        let arguments = ["--exit-on-error", "--dbname=postgres", path_str(&file)];
        run(postgres, "pg_restore", &arguments);
    };
    drill("pg_dump", dump, restore).await;
}

/// The copy of the files has the write-ahead log of the time in which they were copied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_before_a_base_backup_under_load_is_restored_from_it() {
    drill("pg_basebackup", Postgres::back_up, Postgres::restore).await;
}
