//! `Events.WatchEvents`: the events of all stores, for the platform's own programs.

use std::time::Duration;

use futures_util::future::join;
use jiff::SignedDuration;
use proto::{WatchEventsRequest, WatchEventsResponse, events_client::EventsClient};
use tonic::{
    Code, Request, Status, Streaming,
    transport::{Channel, Endpoint},
};

use super::{TIMEOUT, deliver, wait_for_number};
use crate::harness::{
    Database, Platform,
    grpc::{self, with_token},
    run_sql,
};

/// The limit within which the stream of a client that is no longer permitted ends.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Locks the table of clients as a migration may, and cancels the queries that wait for it, four in
/// all: about two checks of the test's stream and two of the dispatcher's.
const FAIL_CHECKS: &str = "
    LOCK TABLE api_clients;
    DO $$
    DECLARE
        failed int := 0;
    BEGIN
        FOR poll IN 1..600 LOOP
            failed := failed + (
                SELECT count(*) FILTER (WHERE pg_cancel_backend(pid)) FROM pg_locks
                WHERE NOT granted AND relation = 'api_clients'::regclass
            );
            EXIT WHEN failed >= 4;
            PERFORM pg_sleep(0.1);
        END LOOP;
        ASSERT failed >= 4;
    END $$";

on_both_databases! {
    /// In order over all stores, from the requested position.
    async fn a_client_watches_all_stores_and_resumes_at_a_position(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let courier = platform.courier().await;
        let first = deliver(&client, &courier).await;
        wait_for_number(&client, 3).await;
        let mut watch = Watch::open(platform, &["tasks:all"], Some(0)).await.unwrap();
        assert_eq!(watch.next(3).await, events(1, 1, &first));

        let second = deliver(&other, &courier).await;
        assert_eq!(watch.next(3).await, events(4, 1, &second));
        drop(watch);
        let third = deliver(&client, &courier).await;
        let mut watch = Watch::open(platform, &["admin"], Some(5)).await.unwrap();

        let mut expected = vec![(6, 3, second)];
        expected.extend(events(7, 4, &third));
        assert_eq!(watch.next(4).await, expected);
    }

    /// Without a position, events numbered from now on: what the stream says first.
    async fn a_client_may_start_at_the_newest_event(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        deliver(&client, &courier).await;
        wait_for_number(&client, 3).await;
        let mut watch = Watch::open(platform, &["tasks:all"], None).await.unwrap();
        let first = watch.0.message().await.unwrap().unwrap();
        assert_eq!(first, WatchEventsResponse { events: vec![], position: 3 });

        let (received, delivery) = join(watch.next(3), deliver(&client, &courier)).await;

        assert_eq!(received, events(4, 4, &delivery));
    }

    async fn an_unknown_position_is_rejected(platform: &Platform) {
        for after in [1, -1, i64::MAX] {
            let rejected = Watch::open(platform, &["admin"], Some(after)).await.err().unwrap();
            assert!(
                matches!(rejected.code(), Code::InvalidArgument | Code::OutOfRange),
                "{rejected:?}"
            );
        }
    }

    async fn a_client_has_32_streams_at_most(platform: &Platform) {
        let operator = platform.operator().await;
        let [client, other] = [
            operator.create_client("", &["tasks:all"]).await,
            operator.create_client("", &["tasks:all"]).await,
        ];
        let (channel, token) = grpc::connect(&platform.core_url, &client, &["tasks:all"]).await;
        let open = async || Watch::open_with((channel.clone(), token.clone()), None).await;
        let mut watches = Vec::new();
        for _ in 0..32 {
            watches.push(open().await.unwrap());
        }

        let rejected = open().await.err().unwrap();

        assert_eq!(
            (rejected.code(), rejected.message()),
            (
                Code::ResourceExhausted,
                "this client has 32 streams open at this core: close one first"
            )
        );
        let connection = grpc::connect(&platform.core_url, &other, &["tasks:all"]).await;
        Watch::open_with(connection, None).await.unwrap();
        watches.pop();
        // Core notices shortly that it is closed.
        let reopened = async { while open().await.is_err() {} };
        tokio::time::timeout(TIMEOUT, reopened).await.expect("a closed stream should not count");
    }

    async fn a_shop_may_not_watch_all_stores(platform: &Platform) {
        let (channel, _) = platform.connect(&["admin"]).await;
        let shop = platform.client().await;
        let request = with_token(shop.token(), WatchEventsRequest::default());

        let rejected = EventsClient::new(channel.clone()).watch_events(request).await;

        assert_eq!(rejected.err().unwrap().code(), Code::PermissionDenied);
        let request = Request::new(WatchEventsRequest::default());
        let anonymous = EventsClient::new(channel).watch_events(request).await;
        assert_eq!(anonymous.err().unwrap().code(), Code::Unauthenticated);
    }

    async fn the_stream_of_a_disabled_client_ends(platform: &Platform) {
        let operator = platform.operator().await;
        let client = operator.create_client("", &["tasks:all"]).await;
        let connection = grpc::connect(&platform.core_url, &client, &["tasks:all"]).await;
        let mut watch = Watch::open_with(connection, None).await.unwrap();
        let mut other = Watch::open(platform, &["tasks:all"], None).await.unwrap();

        operator.disable_client(&client).await;

        assert_ended_as_invalid(&watch.end().await);
        let delivery = deliver(&platform.client().await, &platform.courier().await).await;
        assert_eq!(other.next(3).await, events(1, 1, &delivery));
    }

    /// Its messages and its status arrive once the client reads.
    async fn the_stream_of_a_disabled_client_that_does_not_read_ends(platform: &Platform) {
        let operator = platform.operator().await;
        let client = operator.create_client("", &["tasks:all"]).await;
        let (channel, token) = grpc::connect(&platform.core_url, &client, &["tasks:all"]).await;
        let narrow = Endpoint::from_shared(platform.core_url.clone()).unwrap();
        // Less than a message with an event.
        let narrow = narrow.initial_stream_window_size(64).connect().await.unwrap();
        let mut stalled = Watch::open_with((narrow, token.clone()), None).await.unwrap();
        let mut watch = Watch::open_with((channel, token), None).await.unwrap();
        let (shop, courier) = (platform.client().await, platform.courier().await);
        // More messages than the stream's channel has place for.
        for _ in 0..8 {
            deliver(&shop, &courier).await;
            watch.next(3).await;
        }

        operator.disable_client(&client).await;

        assert_ended_as_invalid(&watch.end().await);
        stalled.next(1).await;
        let ended = loop {
            match stalled.0.message().await {
                Ok(message) => assert!(message.is_some(), "the stream should end with a status"),
                Err(status) => break status,
            }
        };
        assert_ended_as_invalid(&ended);
    }

    async fn a_stream_ends_when_the_secret_of_its_token_is_replaced(platform: &Platform) {
        let operator = platform.operator().await;
        let old = operator.create_client("", &["tasks:all"]).await;
        let connection = grpc::connect(&platform.core_url, &old, &["tasks:all"]).await;
        let mut of_old = Watch::open_with(connection, None).await.unwrap();

        let new = operator.rotate_secret(&old, Some(0)).await;
        let connection = grpc::connect(&platform.core_url, &new, &["tasks:all"]).await;
        let mut of_new = Watch::open_with(connection, None).await.unwrap();

        assert_ended_as_invalid(&of_old.end().await);
        let delivery = deliver(&platform.client().await, &platform.courier().await).await;
        assert_eq!(of_new.next(3).await, events(1, 1, &delivery));
    }

    /// The client continues at its position with a new token.
    async fn a_stream_ends_when_its_token_expires(platform: &Platform) {
        let mut watch = Watch::open(platform, &["tasks:all"], None).await.unwrap();
        platform.advance(SignedDuration::from_mins(59));
        let delivery = deliver(&platform.client().await, &platform.courier().await).await;
        assert_eq!(watch.next(3).await, events(1, 1, &delivery));

        platform.advance(SignedDuration::from_mins(1));

        let status = watch.end().await;
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unauthenticated, "the access token has expired; get a new one")
        );
        let delivery = deliver(&platform.client().await, &platform.courier().await).await;
        let mut watch = Watch::open(platform, &["tasks:all"], Some(3)).await.unwrap();
        assert_eq!(watch.next(3).await, events(4, 4, &delivery));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_as_unavailable_when_core_shuts_down() {
    let platform = Platform::start(Database::sqlite()).await;
    let mut watch = Watch::open(&platform, &["tasks:all"], None).await.unwrap();

    let (status, ()) = join(watch.end(), platform.stop()).await;

    assert_eq!(
        (status.code(), status.message()),
        (
            Code::Unavailable,
            "this core is shutting down; call another one, or this one again"
        )
    );
}

/// The other core has cached the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_a_client_that_was_disabled_at_another_core_ends() {
    let Some([first, second]) = Platform::start_two().await else {
        return;
    };
    let operator = first.operator().await;
    let client = operator.create_client("", &["tasks:all"]).await;
    let connection = grpc::connect(&second.core_url, &client, &["tasks:all"]).await;
    let mut watch = Watch::open_with(connection, None).await.unwrap();

    operator.disable_client(&client).await;

    assert_ended_as_invalid(&watch.end().await);
    Platform::stop_both([first, second]).await;
}

/// No RPC removes a scope from a client, so the test uses SQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stream_of_a_client_that_has_lost_the_scope_ends() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let scopes = ["tasks:all", "notifications"];
    let client = platform.operator().await.create_client("", &scopes).await;
    let connection = grpc::connect(&platform.core_url, &client, &scopes).await;
    let mut watch = Watch::open_with(connection, None).await.unwrap();

    let api_key = &client.api_key;
    let take_away = format!(
        "UPDATE api_clients SET scopes = 'notifications' WHERE api_key = '{api_key}' RETURNING 1"
    );
    assert_eq!(run_sql(&url, &take_away).await, "1\n");

    let status = watch.end().await;
    assert_eq!(
        (status.code(), status.message()),
        (Code::PermissionDenied, "the scope tasks:all is required")
    );
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_whose_checks_fail_because_of_the_database_does_not_end() {
    let Some((platform, url)) = Platform::start_on_postgres().await else {
        return;
    };
    let mut watch = Watch::open(&platform, &["tasks:all"], None).await.unwrap();

    run_sql(&url, FAIL_CHECKS).await;

    let delivery = deliver(&platform.client().await, &platform.courier().await).await;
    assert_eq!(watch.next(3).await, events(1, 1, &delivery));
    platform.stop().await;
}

#[track_caller]
fn assert_ended_as_invalid(status: &Status) {
    assert_eq!(
        (status.code(), status.message()),
        (Code::Unauthenticated, "the access token is not valid")
    );
}

/// The events of a delivery that is created and completed, from a position and number on.
fn events(position: i64, number: i64, delivery: &str) -> Vec<(i64, i64, String)> {
    let event = |index| (position + index, number + index, delivery.to_owned());
    (0..3).map(event).collect()
}

/// A stream of the event log.
struct Watch(Streaming<WatchEventsResponse>);

impl Watch {
    async fn open(
        platform: &Platform,
        scopes: &[&str],
        after: Option<i64>,
    ) -> Result<Self, Status> {
        Self::open_with(platform.connect(scopes).await, after).await
    }

    /// Over a channel to a core, with a token.
    async fn open_with(
        (channel, token): (Channel, String),
        after: Option<i64>,
    ) -> Result<Self, Status> {
        let request = WatchEventsRequest {
            after_position: after,
        };
        let stream = EventsClient::new(channel)
            .watch_events(with_token(&token, request))
            .await?;
        Ok(Self(stream.into_inner()))
    }

    /// The next events: position, number and the object's IRI.
    async fn next(&mut self, count: usize) -> Vec<(i64, i64, String)> {
        let mut received = Vec::new();
        while received.len() < count {
            let message = tokio::time::timeout(TIMEOUT, self.0.message()).await;
            let events = message
                .expect("events should arrive")
                .unwrap()
                .unwrap()
                .events;
            received.extend(events.into_iter().map(|event| {
                let object = proto::iri::of(&event.object);
                (event.position, event.number, object)
            }));
        }
        received
    }

    /// Waits until core ends the stream without another event, and returns why.
    async fn end(&mut self) -> Status {
        let ended = async {
            loop {
                match self.0.message().await {
                    Ok(message) => assert_eq!(message.expect("a status").events, []),
                    Err(status) => break status,
                }
            }
        };
        let ended = tokio::time::timeout(END_TIMEOUT, ended).await;
        ended.expect("the stream should end")
    }
}
