//! PostgreSQL away, in every way it can be: every request is answered in time and told to come
//! again, and all is well again as soon as the database is, without a restart of ours.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{
    ONE_AT_A_TIME,
    caller::{Caller, Failure},
    cluster::Cluster,
    load::Load,
    oracle,
    postgres::Postgres,
    receiver::Receiver,
    wire::Wire,
};

/// How many requests of each kind are made while it is away.
const REQUESTS: usize = 8;

/// How long it may take until requests succeed again: beyond every time limit on the way.
const RECOVERY: Duration = Duration::from_secs(40);

/// How it goes away, and comes back.
type Absence = (&'static str, fn(&mut Postgres), fn(&mut Postgres));

const ABSENCES: [Absence; 4] = [
    (
        "stopped",
        |postgres| postgres.stop(),
        |postgres| postgres.start_again(),
    ),
    (
        "stopped immediately",
        |postgres| postgres.stop_immediately(),
        |postgres| postgres.start_again(),
    ),
    (
        "killed",
        |postgres| postgres.kill(),
        |postgres| postgres.start_again(),
    ),
    (
        "standing still (SIGSTOP)",
        |postgres| postgres.pause(),
        |postgres| postgres.resume(),
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_postgres_is_away_every_request_is_told_to_come_again() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let callers = (cluster.shop().await, cluster.dispatch_board().await);
    let known = callers.0.create_delivery().await.unwrap();
    let task = known["dropoff"]["@id"].as_str().unwrap();

    for (how, leave, come_back) in ABSENCES {
        leave(&mut cluster.postgres);
        let told_after = assert_told_to_come_again(&cluster, &callers, task).await;
        come_back(&mut cluster.postgres);
        let (back_after, _) = time_to_success(&cluster, &callers.0, task).await;
        crate::say(&format!(
            "PostgreSQL {how}: {} requests told to come again, the last after {} ms; first \
             success {} ms after it was back",
            5 * REQUESTS,
            told_after.as_millis(),
            back_after.as_millis()
        ));
    }
}

/// As when its machine is lost and another takes over its address: the connections that there
/// were never say anything again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_go_dead_are_given_up_and_nothing_is_lost() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let wire = Wire::to(postgres.socket()).await;
    let url = wire.database_url();
    let cluster = Cluster::start_on(postgres, &url).await;
    let receiver = Receiver::start().await;
    let callers = (cluster.shop().await, cluster.dispatch_board().await);
    callers.0.subscribe(receiver.url()).await;
    let known = callers.0.create_delivery().await.unwrap();
    let task = known["dropoff"]["@id"].as_str().unwrap();
    let load = Load::start(4, &callers.0, &callers.1);
    load.acknowledges(60).await;

    wire.cut();
    let told_after = assert_told_to_come_again(&cluster, &callers, task).await;
    wire.join();
    let back = Instant::now();
    let (_, created) = time_to_success(&cluster, &callers.0, task).await;
    load.acknowledges(60).await;
    let back_after = back.elapsed();
    let (mut acknowledged, failures) = load.finish().await;

    for failure in &failures {
        assert!(failure.is_to_come_again(), "{failure}");
    }
    for delivery in [&known, &created] {
        acknowledged.created(delivery);
    }
    for number in 0..REQUESTS {
        let delivery = callers.0.create_delivery_once(&key(number)).await.unwrap();
        acknowledged.created(&delivery);
    }
    cluster.end_leases();
    let figures = oracle::judge(&acknowledged, &callers.0, &receiver, oracle::TAKEN_OVER).await;
    crate::say(&format!(
        "connections to PostgreSQL gone dead: told to come again within {} ms; well {} ms after \
         new ones were answered; failed requests: {}; {figures}",
        told_after.as_millis(),
        back_after.as_millis(),
        failures.len()
    ));
    // Those that the load did not create were never meant to be completed.
    figures.assert_nothing_lost(2 * (figures.deliveries - 2 - REQUESTS));
}

/// Under which a delivery is created while the database is away.
fn key(number: usize) -> String {
    format!("away {number}")
}

/// Requests of every kind, all at once; how long the last answer took.
async fn assert_told_to_come_again(
    cluster: &Cluster,
    (shop, board): &(Caller, Caller),
    task: &str,
) -> Duration {
    let asked = Instant::now();
    let mut asking = JoinSet::new();
    for number in 0..REQUESTS {
        let key = key(number);
        let (shop, board, task) = (shop.clone(), board.clone(), task.to_owned());
        asking.spawn(async move {
            let (created, read, listed, completed, granted) = tokio::join!(
                shop.create_delivery_once(&key),
                shop.get(&task),
                shop.get("/api/deliveries"),
                board.complete(&task),
                shop.ask_for_token(),
            );
            [created, read, listed, completed, granted]
        });
    }
    for (kind, answer) in asking.join_all().await.into_iter().flat_map(|answers| {
        let kinds = ["create", "read", "list", "complete", "token"];
        kinds.into_iter().zip(answers)
    }) {
        let is_told = answer.as_ref().is_err_and(Failure::is_to_come_again);
        assert!(is_told, "{kind}: {answer:?}");
    }
    let told_after = asked.elapsed();
    for gateway in &cluster.gateway_urls {
        let gateway = shop.at(gateway);
        // What was asked a second ago is not asked again.
        let mut ready = gateway.probe("/readyz").await;
        while ready == 200 && asked.elapsed() < RECOVERY {
            tokio::time::sleep(Duration::from_millis(100)).await;
            ready = gateway.probe("/readyz").await;
        }
        assert_eq!(ready, 503);
        assert_eq!(gateway.probe("/healthz").await, 200);
    }
    told_after
}

/// How long it takes until a delivery is created, and that delivery; waits until everything is
/// read again and every gateway says that it is ready.
async fn time_to_success(cluster: &Cluster, shop: &Caller, task: &str) -> (Duration, Value) {
    let back = Instant::now();
    let key = Uuid::now_v7().to_string();
    let mut success = None;
    loop {
        let created = shop.create_delivery_once(&key).await;
        let read = shop.get(task).await;
        let mut ready = true;
        for gateway in &cluster.gateway_urls {
            ready &= shop.at(gateway).probe("/readyz").await == 200;
        }
        match created {
            Ok(created) => {
                let first = *success.get_or_insert_with(|| back.elapsed());
                if ready && read.is_ok() {
                    return (first, created);
                }
            }
            Err(failure) => assert!(back.elapsed() < RECOVERY, "not back: {failure}"),
        }
        assert!(back.elapsed() < RECOVERY, "not ready: {read:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
