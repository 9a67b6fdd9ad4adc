//! Events: what happened to a delivery, and what shops may hear of.

use crate::domain::delivery;

/// The name of an event that a webhook may be for (wire.md, "Webhooks").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventName {
    /// Both tasks are done (specification, "Events").
    DeliveryCompleted,
    /// The pickup is done.
    DeliveryPicked,
    /// The delivery will not happen.
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

impl From<delivery::Event> for EventName {
    fn from(event: delivery::Event) -> Self {
        match event {
            delivery::Event::Picked => Self::DeliveryPicked,
            delivery::Event::Completed => Self::DeliveryCompleted,
            delivery::Event::Cancelled => Self::DeliveryCancelled,
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
