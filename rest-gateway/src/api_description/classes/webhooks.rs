//! Webhooks, events and notifications.

use crate::api_description::{
    Class, Field,
    Iri::SchemaOrg,
    Range::{Boolean, Decimal, Enum, Instant, Integer, Link, Object, Text, Url},
    TypeName, enumerations,
};

pub(crate) static WEBHOOK: Class = Class {
    name: "Webhook",
    description: "A subscription of a client to an event.",
    fields: &[
        Field::ID,
        Field::new("url", Url)
            .description("The URL that receives the notifications.")
            .schema_org()
            .required()
            .accepts(
                r#"{
                    "type": "string",
                    "format": "uri",
                    "pattern": "^[Hh][Tt][Tt][Pp][Ss]?://",
                    "maxLength": 2048
                }"#,
            ),
        EVENT_NAME.writable().required(),
        Field::new("secret", Text)
            .optional()
            .description("The key of the signatures; only in the response that creates it."),
        Field::new("secretOverlapEndsAt", Instant)
            .nullable()
            .description("When old secrets become invalid; null if there are none."),
        Field::new("enabled", Boolean).description("Whether the webhook receives notifications."),
        Field::new("disabledAt", Instant)
            .description("When the webhook was disabled; null if it is enabled.")
            .nullable(),
        Field::new("disabledReason", Enum(&enumerations::DISABLED_REASON)).nullable(),
    ],
    ..Class::RESOURCE
};

pub(crate) static EVENT: Class = Class {
    name: "Event",
    description: "An event of a store.",
    fields: &[
        Field::ID,
        Field::new("number", Integer)
            .description("The number in the store's event log: 1, 2, 3 and so on, without gaps."),
        Field::new("event", Enum(&enumerations::LOGGED_EVENT_NAME)),
        EVENT_OBJECT,
        Field::new("createdAt", Instant)
            .description("When the event occurred.")
            .with_iri(SchemaOrg("dateCreated")),
    ],
    ..Class::RESOURCE
};

const EVENT_NAME: Field = Field::new("event", Enum(&enumerations::EVENT_NAME));
const EVENT_OBJECT: Field =
    Field::new("object", Link(None)).description("The resource the event is about.");

pub(crate) static SECRET_ROTATION: Class = Class {
    name: "SecretRotation",
    description: "The parameters of a secret rotation.",
    fields: &[Field::new("overlap", Integer)
        .write_only()
        .accepts(
            r#"{"type": ["integer", "null"], "minimum": 0, "maximum": 604800, "default": 86400}"#,
        )
        .description(
            "Seconds for which the old secret stays valid: 0 to 604800, by default 86400.",
        )],
    ..Class::EMBEDDED
};

pub(crate) static NOTIFICATION: Class = Class {
    name: "Notification",
    description: "One event to be sent to one webhook.",
    fields: &[
        Field::ID.description("The last segment of `@id`; also sent as the header `webhook-id`."),
        Field::new("webhook", Link(Some(&WEBHOOK)))
            .description("The webhook that receives the notification."),
        EVENT_NAME,
        EVENT_OBJECT,
        Field::new("state", Enum(&enumerations::NOTIFICATION_STATE)),
        Field::new("attemptCount", Integer).description("The number of attempts so far."),
        Field::new("nextAttemptAt", Instant)
            .nullable()
            .description("Null if none is scheduled."),
        Field::new("createdAt", Instant)
            .description("When the notification was created.")
            .with_iri(SchemaOrg("dateCreated")),
        Field::new("finishedAt", Instant)
            .description("When the last attempt ended; null while the notification is to be sent.")
            .nullable(),
        Field::new("attempts", Object(&ATTEMPT))
            .list()
            .optional()
            .description("Oldest first; absent in lists."),
    ],
    ..Class::RESOURCE
};

pub(crate) static ATTEMPT: Class = Class {
    name: "NotificationAttempt",
    description: "One request to the webhook's receiver.",
    fields: &[
        Field::new("attemptNumber", Integer).description("Counts from 1."),
        Field::new("endedAt", Instant).description("When the attempt ended."),
        MILLISECONDS,
        FAILURE,
        STATUS_CODE,
        RESPONSE_BODY,
    ],
    ..Class::EMBEDDED
};

const MILLISECONDS: Field =
    Field::new("milliseconds", Integer).description("The duration of the request in milliseconds.");
const FAILURE: Field = Field::new("failure", Enum(&enumerations::FAILURE))
    .nullable()
    .description("Null if delivered.");
const STATUS_CODE: Field = Field::new("statusCode", Integer)
    .nullable()
    .description("The HTTP status of the receiver's response; null without one.");
const RESPONSE_BODY: Field = Field::new("answer", Text)
    .description("The first bytes of the receiver's response body, as text.");

pub(crate) static RECOVERY: Class = Class {
    name: "WebhookRecovery",
    type_name: TypeName::Term,
    description: "The resending of a webhook's notifications.",
    fields: &[
        Field::new("since", Instant)
            .writable()
            .required()
            .description(
                "Resends the failed, exhausted and cancelled notifications since this instant, and \
             sends the events missed while the webhook was disabled. An event within 30 s of \
             disabling or enabling may already have been sent: it is left out if its \
             notification is no longer stored.",
            ),
        Field::new("recovered", Integer)
            .description("The number of notifications that are resent."),
    ],
    ..Class::EMBEDDED
};

pub(crate) static TEST_SEND: Class = Class {
    name: "WebhookTest",
    type_name: TypeName::Term,
    description: "The result of a test request to a webhook's receiver.",
    fields: &[
        Field::new("webhook", Link(Some(&WEBHOOK))).description("The webhook that was tested."),
        Field::new("url", Url).description("The URL the test request was sent to."),
        Field::new("webhookId", Text)
            .description("The header `webhook-id` of the test request; unique per test."),
        EVENT_NAME,
        EVENT_OBJECT.description(
            "A delivery that does not exist: `/api/deliveries/00000000-0000-0000-0000-000000000000`.",
        ),
        Field::new("delivered", Boolean).description("Whether the receiver accepted the test request."),
        FAILURE,
        Field::new("failureDetail", Text)
            .nullable()
            .description("A description of the failure."),
        Field::new("dnsMilliseconds", Decimal)
            .nullable()
            .description("The duration of the DNS resolution; null if it failed."),
        Field::new("connectMilliseconds", Decimal)
            .nullable()
            .description("The duration of the TCP connect; null if it did not succeed."),
        Field::new("tlsMilliseconds", Decimal)
            .nullable()
            .description("The duration of the TLS handshake; null if it did not succeed, and for `http`."),
        Field::new("tlsVersion", Text)
            .nullable()
            .description("Such as `TLSv1.3`."),
        MILLISECONDS,
        STATUS_CODE,
        RESPONSE_BODY,
    ],
    ..Class::EMBEDDED
};
