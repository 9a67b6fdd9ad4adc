//! `Notifications.Receive`: the end of a stream whose dispatcher does not read what it is sent.

use delivery::Credentials;
use futures_util::{StreamExt as _, stream};
use proto::{ReceiveRequest, ReceiveResponse, notifications_client::NotificationsClient};
use tonic::{Streaming, transport::Endpoint};

use super::{
    deliver,
    dispatcher_streams::{END_TIMEOUT, assert_ended_as_invalid, assert_stays_open, open},
    wait_for_attempts,
};
use crate::harness::{
    ApiClient, Courier, Platform, WebhookReceiver,
    grpc::{self, with_token},
};

on_both_databases! {
    /// Its notifications and its status arrive once it reads.
    async fn the_stream_of_a_disabled_dispatcher_that_does_not_read_ends(platform: &Platform) {
        let operator = platform.operator().await;
        let dispatcher = operator.create_client("", &["notifications"]).await;
        let other = operator.create_client("", &["notifications"]).await;
        let shop = Shop::with_proven_webhook(platform).await;
        let mut stalled = open_narrow(platform, &dispatcher).await;
        let mut of_other = open(platform, &other).await;
        let mut notified = shop.deliver_until_stalled(&mut stalled).await;

        operator.disable_client(&dispatcher).await;
        // Core notices it meanwhile.
        assert_stays_open(&mut of_other).await;

        let ended = loop {
            let message = tokio::time::timeout(END_TIMEOUT, stalled.message()).await;
            match message.expect("the stream should end") {
                Ok(message) => {
                    let message = message.expect("the stream should end with a status");
                    notified.on_stream.extend(delivery_iris(&message));
                }
                Err(status) => break status,
            }
        };
        assert_ended_as_invalid(&ended);
        // Core keeps four messages for a dispatcher that does not read, besides those that HTTP/2 keeps.
        assert!(notified.on_stream.len() > 4, "{:?}", notified.on_stream);
        shop.assert_each_notified_once(notified).await;
    }
}

/// A stream whose dispatcher has granted capacity, with place for less than a message that is not read.
async fn open_narrow(platform: &Platform, dispatcher: &Credentials) -> Streaming<ReceiveResponse> {
    let (_, token) = grpc::connect(&platform.core_url, dispatcher, &["notifications"]).await;
    let narrow = Endpoint::from_shared(platform.core_url.clone()).unwrap();
    let narrow = narrow.initial_stream_window_size(64).connect().await;
    let grant = stream::iter([ReceiveRequest { capacity: 64 }]);
    let responses = NotificationsClient::new(narrow.unwrap())
        .receive(with_token(&token, grant.chain(stream::pending())))
        .await;
    responses.unwrap().into_inner()
}

/// A shop with a webhook for completed deliveries that the platform's own dispatcher has called.
struct Shop {
    client: ApiClient,
    courier: Courier,
    receiver: WebhookReceiver,
}

/// Deliveries, and where the notification of each went.
struct Notified {
    deliveries: Vec<String>,
    /// To the dispatcher of a test.
    on_stream: Vec<String>,
    /// To the receiver, by the platform's own dispatcher.
    at_receiver: Vec<String>,
}

impl Shop {
    async fn with_proven_webhook(platform: &Platform) -> Self {
        let shop = Self {
            client: platform.client().await,
            courier: platform.courier().await,
            receiver: WebhookReceiver::start().await,
        };
        let url = shop.receiver.url();
        let webhook = shop.client.create_webhook("delivery.completed", url).await;
        shop.deliver().await;
        shop.next_at_receiver().await;
        // Until then it gets one notification at a time.
        wait_for_attempts(&shop.client, &webhook, 1).await;
        shop
    }

    async fn deliver(&self) -> String {
        deliver(&self.client, &self.courier).await
    }

    /// The delivery that the next notification is about.
    async fn next_at_receiver(&self) -> String {
        let notification = self.receiver.next_notification().await.json();
        notification["data"]["object"].as_str().unwrap().to_owned()
    }

    /// Delivers until a stream takes no more notifications. Only its first message is read.
    async fn deliver_until_stalled(&self, stream: &mut Streaming<ReceiveResponse>) -> Notified {
        let (mut deliveries, mut at_receiver) = (Vec::new(), Vec::new());
        // Until core has read the grant.
        let on_stream = loop {
            deliveries.push(self.deliver().await);
            tokio::select! {
                message = stream.message() => break delivery_iris(&message.unwrap().unwrap()),
                delivery = self.next_at_receiver() => at_receiver.push(delivery),
            }
        };
        let granted = deliveries.len();
        // The two dispatchers get notifications in turn, until one takes none.
        let is_in_turn = |deliveries: &[String], at_receiver: &[String]| {
            let mut two = deliveries.windows(2);
            !two.any(|two| two.iter().all(|delivery| at_receiver.contains(delivery)))
        };
        while is_in_turn(&deliveries[granted..], &at_receiver) {
            deliveries.extend([self.deliver().await, self.deliver().await]);
            at_receiver.push(self.next_at_receiver().await);
        }
        Notified {
            deliveries,
            on_stream,
            at_receiver,
        }
    }

    async fn assert_each_notified_once(&self, notified: Notified) {
        let Notified {
            mut deliveries,
            on_stream,
            at_receiver,
        } = notified;
        let mut sent = [on_stream, at_receiver].concat();
        while sent.len() < deliveries.len() {
            sent.push(self.next_at_receiver().await);
        }
        sent.sort_unstable();
        deliveries.sort_unstable();
        assert_eq!(sent, deliveries);
    }
}

/// The deliveries that the notifications of a message are about.
fn delivery_iris(message: &ReceiveResponse) -> Vec<String> {
    let notifications = message.notifications.iter();
    notifications
        .map(|notification| proto::iri::of(&notification.object))
        .collect()
}
