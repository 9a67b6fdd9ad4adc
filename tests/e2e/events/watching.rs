//! `Events.WatchEvents`: what happens in all stores, for the platform's own programs.

use futures_util::future::join;
use proto::{WatchEventsRequest, WatchEventsResponse, events_client::EventsClient};
use tonic::{Code, Request, Status, Streaming};

use super::{DEADLINE, deliver, once_numbered};
use crate::harness::{Platform, bearing, connect};

on_both_databases! {
    /// In order over all stores, from the position asked for; after a break from the last seen.
    async fn a_program_follows_all_stores_and_goes_on_where_it_was(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let courier = platform.courier().await;
        let first = deliver(&client, &courier).await;
        once_numbered(&client, 2).await;
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

    /// Without a position, what is numbered from now on.
    async fn a_program_may_begin_with_the_present(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        deliver(&client, &courier).await;
        once_numbered(&client, 2).await;
        let mut watch = Watch::open(platform, &["tasks:all"], None).await.unwrap();

        let (told, happened) = join(watch.next(2), deliver(&client, &courier)).await;

        assert_eq!(told, [(3, 3, happened.clone()), (4, 4, happened)]);
    }

    async fn a_position_that_no_event_has_is_refused(platform: &Platform) {
        for after in [1, -1, i64::MAX] {
            let refused = Watch::open(platform, &["admin"], Some(after)).await.err().unwrap();
            assert!(
                matches!(refused.code(), Code::InvalidArgument | Code::OutOfRange),
                "{refused:?}"
            );
        }
    }

    async fn shops_do_not_watch_each_other(platform: &Platform) {
        let (channel, _) = connect(platform, &["admin"]).await;
        let shop = platform.client().await;
        let request = bearing(shop.token(), Request::new(WatchEventsRequest::default()));

        let refused = EventsClient::new(channel.clone()).watch_events(request).await;

        assert_eq!(refused.err().unwrap().code(), Code::PermissionDenied);
        let request = Request::new(WatchEventsRequest::default());
        let stranger = EventsClient::new(channel).watch_events(request).await;
        assert_eq!(stranger.err().unwrap().code(), Code::Unauthenticated);
    }
}

/// A program of the platform's own that follows the log.
struct Watch(Streaming<WatchEventsResponse>);

impl Watch {
    async fn open(
        platform: &Platform,
        scopes: &[&str],
        after: Option<i64>,
    ) -> Result<Self, Status> {
        let (channel, token) = connect(platform, scopes).await;
        let request = WatchEventsRequest {
            after_position: after,
        };
        let stream = EventsClient::new(channel)
            .watch_events(bearing(&token, Request::new(request)))
            .await?;
        Ok(Self(stream.into_inner()))
    }

    /// The next events: position, number and the object's IRI.
    async fn next(&mut self, count: usize) -> Vec<(i64, i64, String)> {
        let mut told = Vec::new();
        while told.len() < count {
            let message = tokio::time::timeout(DEADLINE, self.0.message()).await;
            let events = message.expect("events are told").unwrap().unwrap().events;
            told.extend(events.into_iter().map(|event| {
                let object = proto::iri::of(&event.object);
                (event.position, event.number, object)
            }));
        }
        told
    }
}
