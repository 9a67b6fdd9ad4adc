//! Ids: a `UUIDv7` (RFC 9562 §5.7) each, and a type each, so that one can't stand in for another.

use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id: sorts after those made before it.
            #[expect(clippy::new_without_default, reason = "every new one differs")]
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
    DeliveryId,
    EventId,
    NotificationId,
    PriceListId,
    StoreId,
    TaskId,
    TimeSlotId,
    WebhookId,
}
