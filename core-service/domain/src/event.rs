//! Events of deliveries and webhooks.

use jiff::Timestamp;

use crate::{
    delivery::DeliveryEvent,
    id::{DeliveryId, EventId, StoreId, WebhookId},
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

/// The platform disabled a webhook because of its receiver. Webhooks cannot subscribe to it.
pub const WEBHOOK_DISABLED: &str = "webhook.disabled";

/// The name of an event that webhooks can subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// Both tasks are done (specification, "Events").
    DeliveryCompleted,
    /// The pickup is done.
    DeliveryPicked,
    /// The delivery was cancelled.
    DeliveryCancelled,
}

impl EventName {
    pub const ALL: [Self; 3] = [
        Self::DeliveryCompleted,
        Self::DeliveryPicked,
        Self::DeliveryCancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DeliveryCompleted => "delivery.completed",
            Self::DeliveryPicked => "delivery.picked",
            Self::DeliveryCancelled => "delivery.cancelled",
        }
    }
}

impl From<DeliveryEvent> for EventName {
    fn from(event: DeliveryEvent) -> Self {
        match event {
            DeliveryEvent::Picked => Self::DeliveryPicked,
            DeliveryEvent::Completed => Self::DeliveryCompleted,
            DeliveryEvent::Cancelled => Self::DeliveryCancelled,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no event {0:?}; the events are {known}",
    known = EventName::ALL.map(EventName::as_str).join(", ")
)]
pub struct UnknownEvent(String);

impl std::str::FromStr for EventName {
    type Err = UnknownEvent;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|event| event.as_str() == text)
            .ok_or_else(|| UnknownEvent(text.chars().take(64).collect()))
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
            "delivery.lost"
                .parse::<EventName>()
                .unwrap_err()
                .to_string(),
            "there is no event \"delivery.lost\"; the events are \
             delivery.completed, delivery.picked, delivery.cancelled"
        );
    }
}
