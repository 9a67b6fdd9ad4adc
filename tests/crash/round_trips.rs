//! What many notifications ask of PostgreSQL: how often, counted on the wire, whoever is how busy
//! meanwhile; and nothing for as long as a receiver takes.

use std::time::Duration;

use crate::{
    ONE_AT_A_TIME, cluster::Cluster, dispatcher::Dispatcher, postgres::Postgres, say,
    webhook_receiver::WebhookReceiver, wire::Wire,
};

/// Less than the 15 s that a receiver has.
const HELD: Duration = Duration::from_secs(10);

const NOTIFICATIONS: usize = 4096;
const WEBHOOKS: usize = 16;
/// What a dispatcher grants its only core.
const CREDIT: u32 = 256;

/// Takes what is due and reports it delivered, until so many are recorded.
async fn deliver(dispatcher: &mut Dispatcher, count: usize) {
    dispatcher.report(CREDIT, Vec::new()).await;
    let mut recorded = 0;
    while recorded < count {
        let response = dispatcher.next().await.unwrap();
        recorded += response.recorded.len();
        if !response.notifications.is_empty() {
            let credit = u32::try_from(response.notifications.len()).unwrap();
            dispatcher.report(credit, response.notifications).await;
        }
    }
}

/// Claiming, recording and logging together. Preparing a statement is not counted: a connection
/// does it once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_notifications_cost_at_most_one_round_trip_to_the_database() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(postgres) = Postgres::start() else {
        return;
    };
    let wire = Wire::to(postgres.socket()).await;
    let mut cluster = Cluster::start_on(postgres, &wire.database_url()).await;
    let shop = cluster.shop().await;
    for _ in 0..WEBHOOKS {
        shop.subscribe("http://127.0.0.1:8000/hook").await;
    }
    for dispatcher in &mut cluster.dispatchers {
        dispatcher.terminate().await;
    }
    cluster.cores[1].terminate().await;
    let postgres = &cluster.postgres;
    postgres.sql(&format!(
        "INSERT INTO notifications (store_id, id, event_id, webhook_id, event, delivery_id,
             state, attempts, restarted_after, due_at, created_at)
         SELECT store_id, gen_random_uuid(), gen_random_uuid(), id, event, gen_random_uuid(),
             'pending', 0, 0, number, number
         FROM webhooks, generate_series(1, {NOTIFICATIONS} / {WEBHOOKS}) AS number;
         ANALYZE notifications;
         UPDATE webhooks SET was_slow = false, next_due_at = 1"
    ));

    let mut dispatcher = Dispatcher::open(&cluster).await;
    let before = wire.statements();
    deliver(&mut dispatcher, NOTIFICATIONS).await;
    let logged = NOTIFICATIONS.to_string();
    while postgres.query("SELECT count(*) FROM attempts") != logged {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let statements = wire.statements() - before;

    let delivered = "SELECT count(*) FROM notifications WHERE state = 'delivered'";
    assert_eq!(postgres.query(delivered), logged);
    say(&format!(
        "{NOTIFICATIONS} notifications handed out, recorded and logged in {statements} statements"
    ));
    assert!(statements * 10 <= NOTIFICATIONS, "{statements} statements");
}

/// "No database transaction is open during an HTTP request": while one takes its time, moments
/// come without any.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_is_open_while_a_receiver_takes_its_time() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = WebhookReceiver::start().await;
    receiver.hold_answers(true);
    shop.subscribe(receiver.url()).await;
    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;
    receiver.next_notification().await;

    let transactions = "SELECT count(*) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
             AND xact_start IS NOT NULL";
    let none = async {
        while cluster.postgres.query(transactions) != "0" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let is_none_open = tokio::time::timeout(HELD, none).await.is_ok();
    let leased = "SELECT count(*) FROM notifications WHERE state = 'leased'";
    assert_eq!(
        cluster.postgres.query(leased),
        "1",
        "it is not held any more"
    );
    receiver.hold_answers(false);

    assert!(is_none_open);
}
