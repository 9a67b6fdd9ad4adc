//! The closed sets of strings in requests and responses.

use super::Enumeration;
use crate::{error_codes, violation_codes, warning_codes};

/// Every closed set; each has a JSON Schema of its name.
pub(super) static ALL: &[&Enumeration] = &[
    &DAY_OF_WEEK,
    &TASK_TYPE,
    &TASK_STATUS,
    &DISTANCE_SOURCE,
    &EVENT_NAME,
    &LOGGED_EVENT_NAME,
    &DISABLED_REASON,
    &NOTIFICATION_STATE,
    &FAILURE,
    &ERROR_CODE,
    &VIOLATION_CODE,
    &WARNING_CODE,
];

/// From Monday, as in core's messages.
pub(crate) const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

pub(super) static DAY_OF_WEEK: Enumeration = Enumeration {
    name: "DayOfWeek",
    description: "A day of the week.",
    values: &DAYS,
};

pub(super) static TASK_TYPE: Enumeration = Enumeration {
    name: "TaskType",
    description: "Which of the two tasks of a delivery.",
    values: &["PICKUP", "DROPOFF"],
};

pub(super) static TASK_STATUS: Enumeration = Enumeration {
    name: "TaskStatus",
    description: "Whether a task is completed.",
    values: &["TODO", "DONE"],
};

pub(super) static DISTANCE_SOURCE: Enumeration = Enumeration {
    name: "DistanceSource",
    description: "The source of a distance: `osrm` (road network) or `straight_line` (estimate).",
    values: &["osrm", "straight_line"],
};

pub(super) static EVENT_NAME: Enumeration = Enumeration {
    name: "EventName",
    description: "The name of an event that webhooks can subscribe to: `delivery.picked` (the pickup is done), \
        `delivery.completed` (both tasks are done) or `delivery.cancelled`.",
    values: &[
        "delivery.completed",
        "delivery.picked",
        "delivery.cancelled",
    ],
};

pub(super) static LOGGED_EVENT_NAME: Enumeration = Enumeration {
    name: "LoggedEventName",
    description: "The name of an event in the event log: one that webhooks can subscribe to, or \
        `webhook.disabled` (the platform disabled a webhook because of its receiver).",
    values: &[
        "delivery.completed",
        "delivery.picked",
        "delivery.cancelled",
        "webhook.disabled",
    ],
};

pub(super) static DISABLED_REASON: Enumeration = Enumeration {
    name: "DisabledReason",
    description: "Why a webhook is disabled: by the `client` or the `operator`, because its \
        receiver answered 410 (`gone`), or because its receiver failed for days (`failing`).",
    values: &["client", "operator", "gone", "failing"],
};

pub(super) static NOTIFICATION_STATE: Enumeration = Enumeration {
    name: "NotificationState",
    description: "`pending` (no attempt yet), `failed` (to be retried), `delivered`, `exhausted` \
        (no attempts left) or `cancelled` (its webhook was disabled or deleted).",
    values: &["pending", "failed", "delivered", "exhausted", "cancelled"],
};

pub(super) static FAILURE: Enumeration = Enumeration {
    name: "AttemptFailure",
    description: "Why an attempt failed: `dns` (the host name has no address on the public \
        internet), `connect`, `tls`, `timeout`, `status` (the receiver's response is not 2xx), \
        `protocol` (the response is not HTTP), `secret` (the signing secret cannot be read) or \
        `unknown`.",
    values: &[
        "dns", "connect", "tls", "timeout", "status", "protocol", "secret", "unknown",
    ],
};

pub(super) static ERROR_CODE: Enumeration = Enumeration {
    name: "ErrorCode",
    description: "The kind of an error. `/errors/{code}` explains it.",
    values: error_codes::CODES,
};

pub(super) static VIOLATION_CODE: Enumeration = Enumeration {
    name: "ViolationCode",
    description: "The kind of a violation. `/errors/{code}` explains it.",
    values: violation_codes::CODES,
};

pub(super) static WARNING_CODE: Enumeration = Enumeration {
    name: "WarningCode",
    description: "The kind of a warning. `/errors/{code}` explains it.",
    values: warning_codes::CODES,
};
