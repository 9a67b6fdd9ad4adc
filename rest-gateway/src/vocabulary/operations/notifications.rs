//! What webhooks are and were told.

use super::{Expects, Needs, On, Operation, Parameter, READ, Returns, webhooks::OF_A_STORE};
use crate::{
    error_codes as codes,
    vocabulary::classes::notifications::{NOTIFICATION, RECOVERY, TEST},
};

const SUBJECT: &str = "Notifications";

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Path(&NOTIFICATION),
        path: "/api/webhooks/{id}/notifications",
        id: "listNotifications",
        title: "Lists what a webhook is or was told, newest first",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[
            Parameter {
                name: "state",
                place: "query",
                about: "Those in this state; may be there several times.",
                schema: r#"{
                    "type": "string",
                    "enum": ["pending", "failed", "delivered", "given_up", "dropped"]
                }"#,
            },
            Parameter {
                name: "itemsPerPage",
                place: "query",
                about: "How many a page has.",
                schema: r#"{"type": "integer", "minimum": 1, "maximum": 100, "default": 30}"#,
            },
            Parameter {
                name: "cursor",
                place: "query",
                about: "The place where a page begins, taken from a link in `hydra:view`.",
                schema: r#"{"type": "string"}"#,
            },
        ],
        returns: Returns::Members(&NOTIFICATION),
        refusals: OF_A_STORE,
        ..READ
    },
    Operation {
        on: On::Path(&RECOVERY),
        method: "POST",
        path: "/api/webhooks/{id}/recover",
        id: "recoverWebhook",
        title: "Sends again whatever failed since an instant",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Resource(&RECOVERY, r#"{"since": "2020-04-01T00:00:00+02:00"}"#),
        returns: Returns::Resource(&RECOVERY),
        refusals: &[
            &codes::INSUFFICIENT_SCOPE,
            &codes::NO_STORE,
            &codes::WEBHOOK_DISABLED,
        ],
        ..READ
    },
    Operation {
        on: On::Path(&TEST),
        method: "POST",
        path: "/api/webhooks/{id}/test",
        id: "testWebhook",
        title: "Sends a webhook a signed sample now, and tells how that went",
        about: "The sample has the webhook's own `event` and is signed as every notification is; \
                its `object` is a delivery that never is, so that a receiver can tell it. Answered \
                200 whether or not the receiver took it, after 15 s at the latest; also while the \
                webhook is disabled. Nothing is tried again.",
        subject: SUBJECT,
        needs: Needs::Token,
        expects: Expects::Empty,
        returns: Returns::Resource(&TEST),
        refusals: OF_A_STORE,
        ..READ
    },
    Operation {
        on: On::Resource(&NOTIFICATION),
        path: "/api/notifications/{id}",
        id: "getNotification",
        title: "Reads a notification with its attempts",
        subject: SUBJECT,
        needs: Needs::Token,
        returns: Returns::Resource(&NOTIFICATION),
        refusals: OF_A_STORE,
        ..READ
    },
    Operation {
        on: On::Path(&NOTIFICATION),
        method: "POST",
        path: "/api/notifications/{id}/resend",
        id: "resendNotification",
        title: "Sends a notification again",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        expects: Expects::Empty,
        returns: Returns::Resource(&NOTIFICATION),
        refusals: &[
            &codes::INSUFFICIENT_SCOPE,
            &codes::NO_STORE,
            &codes::WEBHOOK_DISABLED,
        ],
        ..READ
    },
];
