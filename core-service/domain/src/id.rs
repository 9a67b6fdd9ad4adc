//! Ids: `UUIDv7` (RFC 9562 §5.7), with a type per resource, so that they can't be confused.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Generates an id that sorts after earlier ones.
            #[expect(clippy::new_without_default, reason = "every call returns another id")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    AddressId,
    ApiClientId,
    CourierId,
    DeliveryId,
    EventId,
    ImageId,
    IncidentId,
    NotificationId,
    StoreId,
    TaskId,
    TimeSlotId,
    WebhookId,
}
