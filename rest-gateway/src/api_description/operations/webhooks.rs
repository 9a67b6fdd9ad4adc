//! Webhooks, their notifications, and the event log.

use super::{
    operation::{Auth, Expects, HydraTarget, Operation, Returns},
    parameters::Parameter,
};
use crate::{
    api_description::classes::webhooks::{
        EVENT, NOTIFICATION, RECOVERY, SECRET_ROTATION, TEST_SEND, WEBHOOK,
    },
    error_codes as codes,
};

const WEBHOOKS_DEFAULT: Operation = Operation::default("Webhooks", Auth::StoreToken);

pub(super) static WEBHOOKS: &[Operation] = &[
    Operation {
        target: HydraTarget::Collection("webhook"),
        method: "POST",
        path: "/api/webhooks",
        operation_id: "createWebhook",
        summary: "Create a webhook",
        description: "Each time the event occurs in the store, the platform sends a signed \
            `POST` to `url`. Only this response contains `secret`, the key of the signatures.",
        expects: Expects::Resource(
            &WEBHOOK,
            r#"{"event": "delivery.completed", "url": "https://shop.example/webhooks"}"#,
        ),
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        returns: Returns::Created(&WEBHOOK),
        error_codes: &[&codes::TOO_MANY_WEBHOOKS],
        ..WEBHOOKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Collection("webhook"),
        path: "/api/webhooks",
        operation_id: "listWebhooks",
        summary: "List the client's webhooks",
        description: "The secrets are left out. All webhooks are on one page; `itemsPerPage` has no effect.",
        parameters: &[Parameter::ITEMS_PER_PAGE, Parameter::PAGE, Parameter::ORDER],
        returns: Returns::Collection(&WEBHOOK),
        ..WEBHOOKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&WEBHOOK),
        path: "/api/webhooks/{id}",
        operation_id: "getWebhook",
        summary: "Get a webhook",
        description: "`enabled` and `disabledReason` tell whether it receives notifications.",
        returns: Returns::Resource(&WEBHOOK),
        ..WEBHOOKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&WEBHOOK),
        method: "DELETE",
        path: "/api/webhooks/{id}",
        operation_id: "deleteWebhook",
        summary: "Delete a webhook",
        description: "Cancels its pending notifications.",
        returns: Returns::Nothing,
        ..WEBHOOKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/enable",
        operation_id: "enableWebhook",
        summary: "Enable a webhook",
        description: "Events that occurred while it was disabled are sent only by `recover`. A webhook \
            that the platform's operator disabled can only be enabled by the operator.",
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::EmptyObject,
        returns: Returns::Resource(&WEBHOOK),
        error_codes: &[&codes::WEBHOOK_DISABLED_BY_OPERATOR],
        ..WEBHOOKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/disable",
        operation_id: "disableWebhook",
        summary: "Disable a webhook",
        description: "Cancels its pending notifications. Events that occur until it is enabled are sent only by `recover`.",
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::EmptyObject,
        returns: Returns::Resource(&WEBHOOK),
        ..WEBHOOKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/rotate_secret",
        operation_id: "rotateWebhookSecret",
        summary: "Rotate a webhook's secret",
        description: "Only this response contains the new `secret`. During the overlap, \
            notifications are signed with the old secret too.",
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Optional(&SECRET_ROTATION, r#"{"overlap": 3600}"#),
        returns: Returns::Resource(&WEBHOOK),
        ..WEBHOOKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/confirm_secret",
        operation_id: "confirmWebhookSecret",
        summary: "Confirm the new secret and invalidate the old ones",
        description: "Ends the overlap: notifications are signed with the newest secret only.",
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::EmptyObject,
        returns: Returns::Resource(&WEBHOOK),
        ..WEBHOOKS_DEFAULT
    },
];

const NOTIFICATIONS_DEFAULT: Operation = Operation::default("Notifications", Auth::StoreToken);

pub(super) static NOTIFICATIONS: &[Operation] = &[
    Operation {
        target: HydraTarget::Path(&NOTIFICATION),
        path: "/api/webhooks/{id}/notifications",
        operation_id: "listNotifications",
        summary: "List a webhook's notifications",
        description: "Newest first. The list has pages: `hydra:view` links to the others.",
        parameters: &[
            Parameter::query(
                "state",
                "Only notifications in this state; repeat the parameter for several states: \
                 `state=failed&state=exhausted`.",
                r##"{"$ref": "#/components/schemas/NotificationState"}"##,
            )
            .filters("state")
            .repeatable(),
            Parameter::ITEMS_PER_PAGE,
            Parameter::CURSOR,
            Parameter::PAGE,
            Parameter::ORDER,
        ],
        returns: Returns::Collection(&NOTIFICATION),
        ..NOTIFICATIONS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&RECOVERY),
        method: "POST",
        path: "/api/webhooks/{id}/recover",
        operation_id: "recoverWebhook",
        summary: "Resend failed notifications since a time",
        description: "Resends the notifications since a time that failed, are exhausted or were cancelled, and \
            sends the events that occurred while the webhook was disabled.",
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Resource(&RECOVERY, r#"{"since": "2020-04-01T00:00:00+02:00"}"#),
        returns: Returns::Resource(&RECOVERY),
        error_codes: &[&codes::WEBHOOK_DISABLED],
        ..NOTIFICATIONS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&TEST_SEND),
        method: "POST",
        path: "/api/webhooks/{id}/test",
        operation_id: "testWebhook",
        summary: "Send a test request to a webhook",
        description: "Sends one signed sample notification with the webhook's `event` and reports the \
            receiver's response. Its `object` names a delivery that does not exist, so that a \
            receiver can recognise the test. The status is 200 whether or not the receiver \
            accepts the sample; the response takes up to 15 s. Works for disabled webhooks too. \
            The sample is not retried.",
        expects: Expects::EmptyObject,
        returns: Returns::Resource(&TEST_SEND),
        ..NOTIFICATIONS_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&NOTIFICATION),
        path: "/api/notifications/{id}",
        operation_id: "getNotification",
        summary: "Get a notification with its attempts",
        description: "Each attempt has its status, its duration and the start of the receiver's response.",
        returns: Returns::Resource(&NOTIFICATION),
        ..NOTIFICATIONS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&NOTIFICATION),
        method: "POST",
        path: "/api/notifications/{id}/resend",
        operation_id: "resendNotification",
        summary: "Resend a notification",
        description: "Sends the notification now, with the same id. If that fails, the retries start from the beginning.",
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::EmptyObject,
        returns: Returns::Resource(&NOTIFICATION),
        error_codes: &[&codes::TOO_MANY_ATTEMPTS, &codes::WEBHOOK_DISABLED],
        ..NOTIFICATIONS_DEFAULT
    },
];

const EVENTS_DEFAULT: Operation = Operation::default("Events", Auth::StoreToken);

pub(super) static EVENTS: &[Operation] = &[
    Operation {
        target: HydraTarget::Collection("event"),
        path: "/api/events",
        operation_id: "listEvents",
        summary: "List a store's events, oldest first",
        description: "Events are numbered 1, 2, 3 without gaps: store the last number, and send it as `after` \
            to continue.",
        parameters: &[
            Parameter::query(
                "after",
                "Only events with a greater number; without it, the page starts at \
                    the oldest stored event.",
                r#"{"type": "integer", "format": "int64", "minimum": 0}"#,
            )
            .filters("number"),
            Parameter::ITEMS_PER_PAGE,
            Parameter::PAGE,
            Parameter::ORDER,
        ],
        returns: Returns::Collection(&EVENT),
        error_codes: &[&codes::EVENTS_EXPIRED],
        ..EVENTS_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&EVENT),
        path: "/api/events/{id}",
        operation_id: "getEvent",
        summary: "Get an event",
        description: "An event is stored for 30 days by default.",
        returns: Returns::Resource(&EVENT),
        ..EVENTS_DEFAULT
    },
];
