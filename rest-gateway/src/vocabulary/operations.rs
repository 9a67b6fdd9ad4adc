//! The table of what can be done with the resources of each class.

use super::{
    Class,
    classes::{
        api::{COLLECTION, SETTINGS},
        deliveries::{DELIVERY, TASK},
        prices::RETAIL_PRICE,
        shop::{API_APP, STORE, TIME_SLOT, TIME_SLOT_CHOICES, WEBHOOK},
    },
};

/// A request that can be made.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) on: On,
    pub(super) method: &'static str,
    /// With `{…}` where a part of it varies.
    pub(super) path: &'static str,
    pub(super) title: &'static str,
    pub(super) expects: Option<&'static Class>,
    pub(super) returns: Option<&'static Class>,
    pub(super) statuses: &'static [u16],
}

/// What an operation is made on.
#[derive(Debug)]
pub(super) enum On {
    /// The resource itself, by its `@id`.
    Resource(&'static Class),
    /// The collection that the entrypoint links to by this field.
    Collection(&'static str),
    /// A resource with an address of its own.
    Path(&'static Class),
}

/// Method and path of every operation.
#[cfg(test)]
pub(crate) fn method_and_path() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter()
        .map(|operation| (operation.method, operation.path))
}

/// Every operation of the API.
pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Collection("delivery"),
        method: "POST",
        path: "/api/deliveries",
        title: "Creates a delivery",
        expects: Some(&DELIVERY),
        returns: Some(&DELIVERY),
        statuses: &[201, 400, 401, 403, 409, 422],
    },
    Operation {
        on: On::Collection("delivery"),
        method: "GET",
        path: "/api/deliveries",
        title: "Lists the store's deliveries, newest first",
        expects: None,
        returns: Some(&COLLECTION),
        statuses: &[200, 400, 401, 403],
    },
    Operation {
        on: On::Resource(&DELIVERY),
        method: "GET",
        path: "/api/deliveries/{id}",
        title: "Reads a delivery",
        expects: None,
        returns: Some(&DELIVERY),
        statuses: &[200, 401, 403, 404],
    },
    Operation {
        on: On::Resource(&DELIVERY),
        method: "DELETE",
        path: "/api/deliveries/{id}",
        title: "Cancels a delivery",
        expects: None,
        returns: None,
        statuses: &[204, 401, 403, 404, 409],
    },
    Operation {
        on: On::Path(&DELIVERY),
        method: "POST",
        path: "/api/deliveries/assert",
        title: "Tells whether a delivery would be accepted, without creating it",
        expects: Some(&DELIVERY),
        returns: Some(&DELIVERY),
        statuses: &[200, 400, 401, 403, 409],
    },
    Operation {
        on: On::Resource(&TASK),
        method: "GET",
        path: "/api/tasks/{id}",
        title: "Reads a task",
        expects: None,
        returns: Some(&TASK),
        statuses: &[200, 401, 403, 404],
    },
    Operation {
        on: On::Path(&TASK),
        method: "PUT",
        path: "/api/tasks/{id}/done",
        title: "Completes a task",
        expects: None,
        returns: Some(&TASK),
        statuses: &[200, 400, 401, 403, 404, 409],
    },
    Operation {
        on: On::Path(&RETAIL_PRICE),
        method: "POST",
        path: "/api/retail_prices/calculate",
        title: "Calculates the price of a delivery",
        expects: Some(&DELIVERY),
        returns: Some(&RETAIL_PRICE),
        statuses: &[200, 400, 401, 403],
    },
    Operation {
        on: On::Resource(&RETAIL_PRICE),
        method: "GET",
        path: "/api/retail_prices/{token}",
        title: "Reads a price that was calculated",
        expects: None,
        returns: Some(&RETAIL_PRICE),
        statuses: &[200, 400, 401, 403, 404],
    },
    Operation {
        on: On::Path(&TIME_SLOT_CHOICES),
        method: "GET",
        path: "/api/time_slots/choices",
        title: "Lists what the store's default time slot offers now",
        expects: None,
        returns: Some(&TIME_SLOT_CHOICES),
        statuses: &[200, 401, 403, 404],
    },
    Operation {
        on: On::Path(&TIME_SLOT_CHOICES),
        method: "GET",
        path: "/api/time_slots/{id}/choices",
        title: "Lists what a time slot offers now",
        expects: None,
        returns: Some(&TIME_SLOT_CHOICES),
        statuses: &[200, 401, 403, 404],
    },
    Operation {
        on: On::Resource(&TIME_SLOT),
        method: "GET",
        path: "/api/time_slots/{id}",
        title: "Reads a time slot",
        expects: None,
        returns: Some(&TIME_SLOT),
        statuses: &[200, 401, 403, 404],
    },
    Operation {
        on: On::Collection("webhook"),
        method: "POST",
        path: "/api/webhooks",
        title: "Subscribes to an event",
        expects: Some(&WEBHOOK),
        returns: Some(&WEBHOOK),
        statuses: &[201, 400, 401, 409, 422, 429],
    },
    Operation {
        on: On::Collection("webhook"),
        method: "GET",
        path: "/api/webhooks",
        title: "Lists the client's webhooks",
        expects: None,
        returns: Some(&COLLECTION),
        statuses: &[200, 400, 401],
    },
    Operation {
        on: On::Resource(&WEBHOOK),
        method: "GET",
        path: "/api/webhooks/{id}",
        title: "Reads a webhook",
        expects: None,
        returns: Some(&WEBHOOK),
        statuses: &[200, 401, 404],
    },
    Operation {
        on: On::Resource(&WEBHOOK),
        method: "DELETE",
        path: "/api/webhooks/{id}",
        title: "Ends a subscription",
        expects: None,
        returns: None,
        statuses: &[204, 401, 404],
    },
    Operation {
        on: On::Path(&API_APP),
        method: "GET",
        path: "/api/me",
        title: "Reads the client itself",
        expects: None,
        returns: Some(&API_APP),
        statuses: &[200, 401],
    },
    Operation {
        on: On::Resource(&STORE),
        method: "GET",
        path: "/api/stores/{id}",
        title: "Reads the client's store",
        expects: None,
        returns: Some(&STORE),
        statuses: &[200, 401, 403, 404],
    },
    Operation {
        on: On::Resource(&SETTINGS),
        method: "GET",
        path: "/api/settings",
        title: "Reads what the platform is to all its shops",
        expects: None,
        returns: Some(&SETTINGS),
        statuses: &[200],
    },
];
