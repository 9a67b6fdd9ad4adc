//! `Events.WatchEvents`: the events of all stores, for the platform's own programs.

use futures_util::future::join;
use proto::{WatchEventsRequest, WatchEventsResponse, events_client::EventsClient};
use tonic::{Code, Request, Status, Streaming};

use super::{TIMEOUT, deliver, wait_for_number};
use crate::harness::{Platform, grpc::with_token};

on_both_databases! {
    /// In order over all stores, from the requested position.
    async fn a_program_watches_all_stores_and_resumes_at_a_position(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let courier = platform.courier().await;
        let first = deliver(&client, &courier).await;
        wait_for_number(&client, 2).await;
        let mut watch = Watch::open(platform, &["tasks:all"], Some(0)).await.unwrap();
        assert_eq!(watch.next(2).await, [(1, 1, first.clone()), (2, 2, first)]);

        let second = deliver(&other, &courier).await;
        assert_eq!(watch.next(2).await, [(3, 1, second.clone()), (4, 2, second.clone())]);
        drop(watch);
        let third = deliver(&client, &courier).await;
        let mut watch = Watch::open(platform, &["admin"], Some(3)).await.unwrap();

        let expected = [(4, 2, second), (5, 3, third.clone()), (6, 4, third)];
        assert_eq!(watch.next(3).await, expected);
    }

    /// Without a position, events numbered from now on.
    async fn a_program_may_start_at_the_newest_event(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        deliver(&client, &courier).await;
        wait_for_number(&client, 2).await;
        let mut watch = Watch::open(platform, &["tasks:all"], None).await.unwrap();

        let (events, delivery) = join(watch.next(2), deliver(&client, &courier)).await;

        assert_eq!(events, [(3, 3, delivery.clone()), (4, 4, delivery)]);
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
}

/// A stream of the event log.
struct Watch(Streaming<WatchEventsResponse>);

impl Watch {
    async fn open(
        platform: &Platform,
        scopes: &[&str],
        after: Option<i64>,
    ) -> Result<Self, Status> {
        let (channel, token) = platform.connect(scopes).await;
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
}
