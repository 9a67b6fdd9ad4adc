//! What is or was owed to webhooks, and what came of it.

use super::{
    ID,
    shop::{EVENT_NAME, EVENT_OBJECT, WEBHOOK},
};
use crate::vocabulary::{
    Class, Field,
    Iri::{Own, Schema},
    Named, Presence,
    Range::{Boolean, Decimal, Instant, Integer, Link, Object, Text, Url},
};

pub(in crate::vocabulary) static NOTIFICATION: Class = Class {
    name: "Notification",
    iri: Own("Notification"),
    named: Named::Term,
    identified: Presence::Always,
    about: "An event that a webhook is told of.",
    fields: &[
        ID.about("The last part of `@id`, and the header `webhook-id`."),
        Field::new("webhook", Link(Some(&WEBHOOK))),
        EVENT_NAME,
        EVENT_OBJECT,
        Field::new("state", Text).one_of(&["pending", "failed", "delivered", "given_up", "dropped"]).about(
            "`pending` (not tried yet), `failed` (to be tried again), `delivered`, `given_up` or \
             `dropped` (its webhook was disabled).",
        ),
        Field::new("attemptCount", Integer),
        Field::new("nextAttemptAt", Instant).nullable().about("Null if there is to be none."),
        Field::new("createdAt", Instant).means(Schema("dateCreated")),
        Field::new("finishedAt", Instant).nullable(),
        Field::new("attempts", Object(&ATTEMPT))
            .list()
            .sometimes()
            .about("Oldest first; not in lists."),
    ],
};

pub(in crate::vocabulary) static ATTEMPT: Class = Class {
    name: "NotificationAttempt",
    iri: Own("NotificationAttempt"),
    named: Named::Not,
    identified: Presence::Never,
    about: "A request that was made to tell of an event.",
    fields: &[
        Field::new("attemptNumber", Integer).about("Counts from 1."),
        Field::new("endedAt", Instant),
        MILLISECONDS,
        FAILURE,
        STATUS_CODE,
        ANSWER,
    ],
};

const MILLISECONDS: Field = Field::new("milliseconds", Integer).about("How long it took.");
const FAILURE: Field = Field::new("failure", Text).nullable().about(
    "`dns`, `address_refused`, `connect`, `tls`, `timeout`, `status` or `protocol`; null if it \
     was delivered.",
);
const STATUS_CODE: Field = Field::new("statusCode", Integer)
    .nullable()
    .about("The HTTP status, if there was an answer.");
const ANSWER: Field = Field::new("answer", Text).about("The first bytes of the answer, as text.");

pub(in crate::vocabulary) static RECOVERY: Class = Class {
    name: "WebhookRecovery",
    iri: Own("WebhookRecovery"),
    named: Named::Term,
    identified: Presence::Never,
    about: "That a webhook is told again of what failed.",
    fields: &[
        Field::new("since", Instant).writeable().required().about(
            "Also of what happened since then while the webhook was disabled. What happened within \
             30 s of when it was disabled or enabled is left out, if it is longer ago than \
             notifications are kept: it may have been told.",
        ),
        Field::new("recovered", Integer).about("How many notifications are sent again."),
    ],
};

pub(in crate::vocabulary) static TEST: Class = Class {
    name: "WebhookTest",
    iri: Own("WebhookTest"),
    named: Named::Term,
    identified: Presence::Never,
    about: "What a webhook's receiver was sent to try it, and how that went.",
    fields: &[
        Field::new("webhook", Link(Some(&WEBHOOK))),
        Field::new("url", Url).about("Where the sample was sent."),
        Field::new("webhookId", Text).about("The header `webhook-id` of the sample: new for each."),
        EVENT_NAME,
        EVENT_OBJECT.about(
            "A delivery that never is: `/api/deliveries/00000000-0000-0000-0000-000000000000`.",
        ),
        Field::new("delivered", Boolean).about("Whether the receiver took it."),
        FAILURE,
        Field::new("failureDetail", Text)
            .nullable()
            .about("Why it failed, for people."),
        Field::new("dnsMilliseconds", Decimal)
            .nullable()
            .about("How long resolving the host's name took; null if that failed."),
        Field::new("connectMilliseconds", Decimal)
            .nullable()
            .about("How long connecting took; null if it came not so far."),
        Field::new("tlsMilliseconds", Decimal)
            .nullable()
            .about("How long TLS took; null if it came not so far, and over http."),
        Field::new("tlsVersion", Text)
            .nullable()
            .about("Such as `TLSv1.3`."),
        MILLISECONDS,
        STATUS_CODE,
        ANSWER,
    ],
};
