//! Webhooks.

use super::{Expects, Needs, On, Operation, Parameter, READ, Returns};
use crate::{
    error_codes::{self as codes, ErrorCode},
    vocabulary::classes::shop::{SECRET_ROTATION, WEBHOOK},
};

const SUBJECT: &str = "Webhooks";

/// Who belongs to no store has nothing here.
pub(super) const OF_A_STORE: &[&ErrorCode] = &[&codes::INSUFFICIENT_SCOPE, &codes::NO_STORE];

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Collection("webhook"),
        method: "POST",
        path: "/api/webhooks",
        id: "createWebhook",
        title: "Subscribes to an event",
        about: "From then on the `url` is sent a signed `POST` whenever the event happens to a \
                delivery of the store. The `secret`, the key of the signatures, is shown this once.",
        subject: SUBJECT,
        needs: Needs::Token,
        expects: Expects::Resource(
            &WEBHOOK,
            r#"{"event": "delivery.completed", "url": "https://shop.example/webhooks"}"#,
        ),
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        returns: Returns::Created(&WEBHOOK),
        refusals: &[&codes::TOO_MANY_WEBHOOKS, &codes::NO_STORE],
    },
    Operation {
        on: On::Collection("webhook"),
        path: "/api/webhooks",
        id: "listWebhooks",
        title: "Lists the client's webhooks",
        subject: SUBJECT,
        needs: Needs::Token,
        returns: Returns::Members(&WEBHOOK),
        refusals: OF_A_STORE,
        ..READ
    },
    Operation {
        on: On::Resource(&WEBHOOK),
        path: "/api/webhooks/{id}",
        id: "getWebhook",
        title: "Reads a webhook",
        subject: SUBJECT,
        needs: Needs::Token,
        returns: Returns::Resource(&WEBHOOK),
        refusals: OF_A_STORE,
        ..READ
    },
    Operation {
        on: On::Resource(&WEBHOOK),
        method: "DELETE",
        path: "/api/webhooks/{id}",
        id: "deleteWebhook",
        title: "Ends a subscription",
        about: "What is still owed to it is dropped.",
        subject: SUBJECT,
        needs: Needs::Token,
        returns: Returns::Nothing,
        refusals: OF_A_STORE,
        ..READ
    },
    Operation {
        on: On::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/enable",
        id: "enableWebhook",
        title: "Tells a webhook of what happens from now on",
        about: "What happened while it was disabled is not told.",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Empty,
        returns: Returns::Resource(&WEBHOOK),
        refusals: OF_A_STORE,
    },
    Operation {
        on: On::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/disable",
        id: "disableWebhook",
        title: "Tells a webhook nothing until it is enabled again",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Empty,
        returns: Returns::Resource(&WEBHOOK),
        refusals: OF_A_STORE,
        ..READ
    },
    Operation {
        on: On::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/rotate_secret",
        id: "rotateWebhookSecret",
        title: "Gives a webhook a new secret",
        about: "The answer shows the new `secret`, this once. For the time of the overlap, notifications are signed with the old one too.",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Optional(&SECRET_ROTATION, r#"{"overlap": 3600}"#),
        returns: Returns::Resource(&WEBHOOK),
        refusals: OF_A_STORE,
    },
    Operation {
        on: On::Path(&WEBHOOK),
        method: "POST",
        path: "/api/webhooks/{id}/confirm_secret",
        id: "confirmWebhookSecret",
        title: "Ends the time in which a webhook has several secrets",
        about: "From then on the newest alone is good.",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Empty,
        returns: Returns::Resource(&WEBHOOK),
        refusals: OF_A_STORE,
    },
];
