//! Events of deliveries and webhooks.

use jiff::Timestamp;

use crate::{
    id::{DeliveryId, EventId, StoreId, WebhookId},
    named_enum::named_enum,
};

/// An event of the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub id: EventId,
    pub store_id: StoreId,
    /// Such as `delivery.completed`. The log also has events that webhooks cannot subscribe to.
    pub name: String,
    pub object: Object,
    pub created_at: Timestamp,
    /// Its number among the store's events: 1, 2, 3 and so on, without gaps.
    pub number: i64,
    /// Its number among the events of all stores.
    pub position: i64,
}

/// The resource that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Delivery(DeliveryId),
    Webhook(WebhookId),
}

/// The event that the platform disabled a webhook because of its receiver. Webhooks cannot
/// subscribe to it.
pub const WEBHOOK_DISABLED: &str = "webhook.disabled";

named_enum! {
    /// The name of an event that webhooks can subscribe to.
    pub enum EventName("event", ", ") {
        /// Both tasks are done (specification, "Events").
        DeliveryCompleted = "delivery.completed",
        /// The pickup is done.
        DeliveryPicked = "delivery.picked",
        /// The delivery was cancelled.
        DeliveryCancelled = "delivery.cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_written() {
        let texts = [
            "delivery.completed",
            "delivery.picked",
            "delivery.cancelled",
        ];
        for (event, text) in EventName::ALL.into_iter().zip(texts) {
            assert_eq!((event.as_str(), text.parse()), (text, Ok(event)));
        }
        assert_eq!(
            "delivery.lost".parse::<EventName>().unwrap_err(),
            "there is no event \"delivery.lost\"; the events are \
             delivery.completed, delivery.picked, delivery.cancelled"
        );
    }
}
