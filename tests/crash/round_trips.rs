//! The load on PostgreSQL: statements counted in a proxy, and no open transaction during a request
//! to a receiver.

use std::time::Duration;

use proto::{
    CourierList, CreateCourierRequest, ListCourierListsRequest, SetCourierListsRequest,
    WatchEventsRequest, couriers_client::CouriersClient, events_client::EventsClient,
};

use crate::{
    all_processors, caller::iri, cluster::Cluster, dispatcher::Dispatcher, eventually, grpc,
    postgres::Postgres, postgres_proxy::PostgresProxy, report, webhook_receiver::WebhookReceiver,
};

/// Less than the 15 s that a receiver has to respond.
const HOLD_TIME: Duration = Duration::from_secs(10);

/// Far longer than logging all attempts takes.
const LOG_TIMEOUT: Duration = Duration::from_mins(1);

/// How long the statements of an idle cluster are counted.
const IDLE_TIME: Duration = Duration::from_secs(4);

const EVENT_STREAMS: usize = 32;

const CREATES: usize = 500;
/// Of a create with an idempotency key: the key is looked up, then stored with the delivery. Others are what
/// cores do periodically.
const STATEMENTS_WITH_KEY: usize = 2;
/// How often tasks are moved, and how many statements of other work fall into one move.
const MOVES: usize = 20;
const PERIODIC_STATEMENTS: usize = 64;
const NOTIFICATIONS: usize = 4096;
const WEBHOOKS: usize = 16;
/// The capacity that a dispatcher grants its only core.
const CAPACITY: u32 = 256;

/// A cluster whose statements are counted by a proxy.
async fn start() -> Option<(Cluster, PostgresProxy)> {
    let postgres = Postgres::start()?;
    let proxy = PostgresProxy::start(postgres.socket()).await;
    let cluster = Cluster::start_on(postgres, &proxy.database_url()).await;
    Some((cluster, proxy))
}

/// Receives due notifications and reports them as delivered, until `count` are recorded.
async fn deliver_all(dispatcher: &mut Dispatcher, count: usize) {
    dispatcher.grant(CAPACITY).await;
    let (mut recorded, mut responses) = (0, 0);
    while recorded < count {
        responses += 1;
        assert!(responses <= count, "{recorded} of {count} are recorded");
        let delivered = dispatcher.next().await.unwrap().notifications;
        let reported = delivered.len();
        dispatcher.report(delivered).await.unwrap();
        recorded += reported;
        dispatcher.grant(u32::try_from(reported).unwrap()).await;
    }
}

/// Includes claims, outcomes and attempts. Preparing a statement is not counted: a
/// connection does it once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_notifications_cost_at_most_one_round_trip_to_the_database() {
    let _processors = all_processors().await;
    let Some((mut cluster, proxy)) = start().await else {
        return;
    };
    cluster
        .prepare_backlog(WEBHOOKS, NOTIFICATIONS / WEBHOOKS)
        .await;
    let postgres = &cluster.postgres;

    let mut dispatcher = Dispatcher::open(&cluster).await;
    let before = proxy.statements();
    deliver_all(&mut dispatcher, NOTIFICATIONS).await;
    let all = NOTIFICATIONS.to_string();
    eventually(LOG_TIMEOUT, "attempts are not logged", async || {
        (postgres.query("SELECT count(*) FROM attempts") == all).then_some(())
    })
    .await;
    let statements = proxy.statements() - before;

    let delivered = "SELECT count(*) FROM notifications WHERE state = 'delivered'";
    assert_eq!(postgres.query(delivered), all);
    report(&format!(
        "{NOTIFICATIONS} notifications dispatched, recorded and logged in {statements} statements"
    ));
    assert!(statements * 10 <= NOTIFICATIONS, "{statements} statements");
}

/// It inserts the delivery with its tasks, if the definitions have not changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_costs_one_statement() {
    let _processors = all_processors().await;
    let Some((cluster, proxy)) = start().await else {
        return;
    };
    let shop = cluster.shop().await;

    let before = proxy.statements();
    for _ in 0..CREATES {
        shop.create_delivery().await.unwrap();
    }
    let statements = proxy.statements() - before;

    report(&format!(
        "{CREATES} deliveries created in {statements} statements"
    ));
    // The rest is what cores do periodically.
    assert_eq!(statements / CREATES, 1, "{statements} statements");
}

/// Of an operator that has set no quota.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_with_a_key_costs_a_fixed_number_of_statements() {
    let _processors = all_processors().await;
    let Some((cluster, proxy)) = start().await else {
        return;
    };
    let shop = cluster.shop().await;

    let before = proxy.statements();
    for number in 0..CREATES {
        let key = format!("key {number}");
        shop.create_delivery_with_key(&key).await.unwrap();
    }
    let statements = proxy.statements() - before;

    report(&format!(
        "{CREATES} deliveries created with keys in {statements} statements"
    ));
    assert_eq!(
        statements / CREATES,
        STATEMENTS_WITH_KEY,
        "{statements} statements"
    );
}

/// Those of both cores' periodic work are a few more, since a move of many tasks takes longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moving_200_tasks_to_another_list_costs_as_many_statements_as_moving_10() {
    let _processors = all_processors().await;
    let Some((cluster, proxy)) = start().await else {
        return;
    };
    let (shop, client) = (cluster.shop().await, &cluster.operator_client);
    let (channel, token) = grpc::connect(&cluster.core_urls[0], client, &["admin"]).await;
    let mut desk = CouriersClient::new(channel);
    let mut counted = Vec::new();
    for deliveries in [5, 100] {
        let mut tasks = Vec::new();
        for _ in 0..deliveries {
            let delivery = shop.create_delivery().await.unwrap();
            let names =
                ["pickup", "dropoff"].map(|task| proto::iri::name(iri(&delivery[task])).to_owned());
            tasks.extend(names);
        }
        let request = grpc::with_token(&token, ListCourierListsRequest::default());
        let found = desk.list_courier_lists(request).await.unwrap().into_inner();
        let mut lists = Vec::new();
        for display_name in ["Ada", "Ben"] {
            let request = CreateCourierRequest {
                display_name: display_name.to_owned(),
                ..Default::default()
            };
            let created = desk.create_courier(grpc::with_token(&token, request)).await;
            lists.push(CourierList {
                courier: created.unwrap().into_inner().name,
                etag: found.empty_etag.clone(),
                ..Default::default()
            });
        }
        lists[0].tasks = tasks;

        let mut before = 0;
        // The first one assigns them.
        for number in 0..=MOVES {
            let request = SetCourierListsRequest {
                day: found.day.clone(),
                lists: lists.clone(),
                idempotency: None,
            };
            let set = desk
                .set_courier_lists(grpc::with_token(&token, request))
                .await;
            lists = set.unwrap().into_inner().lists;
            assert_eq!(lists[number % 2].tasks.len(), 2 * deliveries);
            let (one, other) = lists.split_at_mut(1);
            std::mem::swap(&mut one[0].tasks, &mut other[0].tasks);
            if number == 0 {
                before = proxy.statements();
            }
        }
        counted.push((proxy.statements() - before) / MOVES);
    }

    report(&format!(
        "10 and 200 tasks moved to another list in {counted:?} statements"
    ));
    assert!(
        counted[1] <= counted[0] + PERIODIC_STATEMENTS,
        "{counted:?}"
    );
}

/// While a receiver does not respond, there are moments without an open transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_is_open_while_a_receiver_does_not_respond() {
    let _processors = all_processors().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let (shop, board) = (cluster.shop().await, cluster.dispatch_board().await);
    let receiver = WebhookReceiver::start().await;
    receiver.hold_responses(true);
    shop.subscribe(receiver.url()).await;
    let delivery = shop.create_delivery().await.unwrap();
    board.complete_delivery(&delivery).await;
    receiver.next_notification().await;

    let transactions = "SELECT count(*) FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
             AND xact_start IS NOT NULL";
    eventually(HOLD_TIME, "a transaction stays open", async || {
        (cluster.postgres.query(transactions) == "0").then_some(())
    })
    .await;
    let leased = "SELECT count(*) FROM notifications WHERE state = 'leased'";
    assert_eq!(
        cluster.postgres.query(leased),
        "1",
        "the notification is no longer leased"
    );
    receiver.hold_responses(false);
}

/// One poller looks for new events for all streams of a core, and one query checks their client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_event_streams_cost_no_more_round_trips_than_one() {
    let _processors = all_processors().await;
    let Some((cluster, proxy)) = start().await else {
        return;
    };
    let client = &cluster.operator_client;
    let (channel, token) = grpc::connect(&cluster.core_urls[0], client, &["tasks:all"]).await;
    let open = async || {
        let request = grpc::with_token(&token, WatchEventsRequest::default());
        let mut events = EventsClient::new(channel.clone());
        events.watch_events(request).await.unwrap().into_inner()
    };
    let idle_statements = async || {
        let before = proxy.statements();
        tokio::time::sleep(IDLE_TIME).await;
        proxy.statements() - before
    };
    let mut streams = vec![open().await];
    let of_one = idle_statements().await;

    while streams.len() < EVENT_STREAMS {
        streams.push(open().await);
    }
    let of_all = idle_statements().await;

    report(&format!(
        "in {} s without events: {of_one} statements with one stream of events, {of_all} with \
         {EVENT_STREAMS}",
        IDLE_TIME.as_secs()
    ));
    // How many periodic statements fall into that time varies, by fewer than one for each stream.
    assert!(of_all < of_one + EVENT_STREAMS, "{of_one}, {of_all}");
}
