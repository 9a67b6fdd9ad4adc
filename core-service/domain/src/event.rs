//! Events of deliveries and webhooks, and the log of the numbered ones.

use jiff::Timestamp;

use crate::{
    id::{DeliveryId, EventId, StoreId, WebhookId},
    named_enum::named_enum,
};

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
        /// The delivery was created.
        DeliveryCreated = "delivery.created",
        /// The dropoff gets a courier, and had none.
        DeliveryAssigned = "delivery.assigned",
        /// The pickup is started.
        DeliveryStarted = "delivery.started",
        /// The pickup is done.
        DeliveryPicked = "delivery.picked",
        /// The dropoff is started.
        DeliveryInTransit = "delivery.in_transit",
        /// The dropoff is done and the pickup is not.
        DeliveryDropped = "delivery.dropped",
        /// A task failed.
        DeliveryFailed = "delivery.failed",
        /// The delivery was cancelled.
        DeliveryCancelled = "delivery.cancelled",
        /// A task has a new window.
        DeliveryRescheduled = "delivery.rescheduled",
        /// A task that was done is to be done again.
        DeliveryReopened = "delivery.reopened",
    }
}

/// The numbers of the retained entries of a log, such as events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogBounds {
    /// The newest deleted number; 0 before the first deletion.
    pub retained_after: i64,
    /// The newest assigned number; 0 before the first event.
    pub last: i64,
}

/// Why the entries of a log after a cursor can't be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorError {
    /// Some of the following entries have been deleted.
    Expired { retained_after: i64 },
    /// No entry has this number: the cursor belongs to another log, or this log has lost entries.
    Beyond { last: i64 },
}

impl CursorError {
    /// The message, of a log whose entries are called so: `event`.
    pub fn of(self, entry: &str) -> String {
        match self {
            Self::Expired { retained_after } => {
                let oldest = retained_after.saturating_add(1);
                format!(
                    "the {entry}s up to {retained_after} have been deleted; the oldest is {oldest}"
                )
            }
            Self::Beyond { last } => format!("is beyond the newest {entry}, {last}"),
        }
    }
}

impl LogBounds {
    /// The number of the oldest retained event, or of the next one if there is none.
    pub fn first(&self) -> i64 {
        self.retained_after.saturating_add(1)
    }

    /// Fails unless all events after a cursor are retained.
    pub fn check_cursor(&self, after: i64) -> Result<(), CursorError> {
        if after < self.retained_after {
            return Err(CursorError::Expired {
                retained_after: self.retained_after,
            });
        }
        if after > self.last {
            return Err(CursorError::Beyond { last: self.last });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_written() {
        let texts = [
            "delivery.completed",
            "delivery.created",
            "delivery.assigned",
            "delivery.started",
            "delivery.picked",
            "delivery.in_transit",
            "delivery.dropped",
            "delivery.failed",
            "delivery.cancelled",
            "delivery.rescheduled",
            "delivery.reopened",
        ];
        assert_eq!(EventName::ALL.map(EventName::as_str), texts);
        assert_eq!(texts.map(str::parse), EventName::ALL.map(Ok));
        assert_eq!(
            "delivery.lost".parse::<EventName>().unwrap_err(),
            "there is no event \"delivery.lost\"; the events are \
             delivery.completed, delivery.created, delivery.assigned, delivery.started, delivery.picked, \
             delivery.in_transit, delivery.dropped, delivery.failed, delivery.cancelled, delivery.rescheduled, \
             delivery.reopened"
        );
    }

    #[test]
    fn a_cursor_is_valid_while_all_following_events_are_retained() {
        let empty = LogBounds::default();
        let some = LogBounds {
            retained_after: 20,
            last: 50,
        };
        let all_deleted = LogBounds {
            retained_after: 50,
            last: 50,
        };
        let expired = |retained_after| Err::<(), _>(CursorError::Expired { retained_after });
        let beyond = |last| Err::<(), _>(CursorError::Beyond { last });
        for (bounds, after, expected) in [
            (empty, 0, Ok(())),
            (empty, 1, beyond(0)),
            (some, 0, expired(20)),
            (some, 19, expired(20)),
            (some, 20, Ok(())),
            (some, 50, Ok(())),
            (some, 51, beyond(50)),
            (some, i64::MAX, beyond(50)),
            (all_deleted, 49, expired(50)),
            (all_deleted, 50, Ok(())),
        ] {
            assert_eq!(bounds.check_cursor(after), expected, "{bounds:?} {after}");
        }
        assert_eq!(
            (empty.first(), some.first(), all_deleted.first()),
            (1, 21, 51)
        );
        let messages = [expired(20), beyond(50)].map(|error| error.unwrap_err().of("task change"));
        assert_eq!(
            messages,
            [
                "the task changes up to 20 have been deleted; the oldest is 21",
                "is beyond the newest task change, 50"
            ]
        );
    }
}
