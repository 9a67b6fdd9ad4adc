//! Deliveries, tasks and retail prices.

use super::{
    operation::{Auth, Expects, HydraTarget, Operation, Returns},
    parameters::Parameter,
};
use crate::{
    api_description::classes::{
        deliveries::{DELIVERY, TASK},
        prices::RETAIL_PRICE,
    },
    error_codes::{self as codes, ErrorCode},
};

const DELIVERY_EXAMPLE: &str = r#"{
    "dropoff": {
        "address": {
            "streetAddress": "48 Rue de Rivoli, 75004 Paris",
            "contactName": "Ada Martin",
            "telephone": "+33612345678",
            "description": "Second floor, on the left"
        },
        "before": "tomorrow 13:00",
        "comments": "Fragile"
    }
}"#;

const DRAFT_ERRORS: &[&ErrorCode] = &[
    &codes::EXTERNAL_REFERENCE_TAKEN,
    &codes::PRICE_MISMATCH,
    &codes::PRICE_EXPIRED,
    &codes::PRICE_USED,
];

/// The JSON Schema of a time in a query.
const TIME: &str = r#"{"type": "string", "pattern": "\\S", "maxLength": 128}"#;

const TAX: &[Parameter] = &[Parameter::query(
    "tax",
    "Whether `amount` includes the tax.",
    r#"{"type": "string", "enum": ["included", "excluded"], "default": "included"}"#,
)];

const DELIVERIES_DEFAULT: Operation = Operation::default("Deliveries", Auth::Scope("deliveries"));

pub(super) static DELIVERIES: &[Operation] = &[
    Operation {
        target: HydraTarget::Collection("delivery"),
        method: "POST",
        path: "/api/deliveries",
        operation_id: "createDelivery",
        summary: "Create a delivery",
        description: "The dropoff requires an address and a time: `before` or `timeSlot`. The \
            pickup defaults to the store's address. An invalid request is answered with all its \
            violations at once.",
        expects: Expects::Resource(&DELIVERY, DELIVERY_EXAMPLE),
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        returns: Returns::Created(&DELIVERY),
        error_codes: &[
            &codes::EXTERNAL_REFERENCE_TAKEN,
            &codes::PRICE_MISMATCH,
            &codes::PRICE_EXPIRED,
            &codes::PRICE_USED,
            &codes::TOO_MANY_DELIVERIES,
        ],
        ..DELIVERIES_DEFAULT
    },
    Operation {
        target: HydraTarget::Collection("delivery"),
        path: "/api/deliveries",
        operation_id: "listDeliveries",
        summary: "List the store's deliveries, newest first",
        description: "The list has pages: `hydra:view` links to the others. Deliveries created in \
            the meantime do not shift the pages.",
        parameters: &[
            Parameter::ITEMS_PER_PAGE,
            Parameter::CURSOR,
            Parameter::PAGE,
            Parameter::ORDER,
            Parameter::query(
                "externalReference",
                "Only the delivery with this reference.",
                r#"{"type": "string", "minLength": 1}"#,
            )
            .filters("externalReference"),
            Parameter::query(
                "createdAt[after]",
                "Only deliveries created at or after this time, in the syntax of a \
                 task's `before`, such as `yesterday`.",
                TIME,
            )
            .filters("createdAt"),
            Parameter::query(
                "createdAt[before]",
                "Only deliveries created at or before this time.",
                TIME,
            )
            .filters("createdAt"),
            Parameter::query(
                "dropoff.before[after]",
                "Only deliveries with the dropoff's `before` at or after this time.",
                TIME,
            )
            .filters("dropoff.before"),
            Parameter::query(
                "dropoff.before[before]",
                "Only deliveries with the dropoff's `before` at or before this time.",
                TIME,
            )
            .filters("dropoff.before"),
            Parameter::query(
                "status",
                "`DONE`: only deliveries with both tasks done; `TODO`: only the \
                    others.",
                r#"{"type": "string", "enum": ["TODO", "DONE"]}"#,
            )
            .filters("status"),
            Parameter::query(
                "exists[cancelledAt]",
                "Only cancelled deliveries (`true`), or only the others (`false`).",
                r#"{"type": "string", "enum": ["true", "false", "1", "0"]}"#,
            )
            .filters("cancelledAt"),
        ],
        returns: Returns::Collection(&DELIVERY),
        ..DELIVERIES_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&DELIVERY),
        method: "POST",
        path: "/api/deliveries/assert",
        operation_id: "assertDelivery",
        summary: "Validate a delivery",
        description: "Creates nothing. The response is the delivery as it would be created, without ids. \
            `warnings` lists what may be a mistake: misspelled members, times in the past, vague addresses.",
        expects: Expects::Resource(&DELIVERY, DELIVERY_EXAMPLE),
        returns: Returns::Preview(&DELIVERY),
        error_codes: DRAFT_ERRORS,
        ..DELIVERIES_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&DELIVERY),
        path: "/api/deliveries/{id}",
        operation_id: "getDelivery",
        summary: "Get a delivery",
        description: "The delivery with both of its tasks.",
        returns: Returns::Resource(&DELIVERY),
        ..DELIVERIES_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&DELIVERY),
        method: "DELETE",
        path: "/api/deliveries/{id}",
        operation_id: "cancelDelivery",
        summary: "Cancel a delivery",
        description: "Possible until one of its tasks is done. Cancelling a cancelled delivery \
            has no effect.",
        returns: Returns::Nothing,
        error_codes: &[&codes::TASK_DONE],
        ..DELIVERIES_DEFAULT
    },
];

const TASKS_DEFAULT: Operation = Operation::default("Tasks", Auth::None);

pub(super) static TASKS: &[Operation] = &[
    Operation {
        target: HydraTarget::Resource(&TASK),
        path: "/api/tasks/{id}",
        operation_id: "getTask",
        summary: "Get a task",
        description: "The `status` of a completed task is `DONE`. Prefer a webhook to polling; \
            when polling, send the last `ETag` as `If-None-Match`.",
        auth: Auth::Scope("tasks"),
        returns: Returns::Resource(&TASK),
        ..TASKS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&TASK),
        method: "PUT",
        path: "/api/tasks/{id}/done",
        operation_id: "completeTask",
        summary: "Complete a task",
        description: "For the platform's own programs. A task that is done stays unchanged.",
        auth: Auth::Scope("tasks:all"),
        expects: Expects::EmptyObject,
        returns: Returns::Resource(&TASK),
        error_codes: &[&codes::DELIVERY_CANCELLED],
        ..TASKS_DEFAULT
    },
];

const RETAIL_PRICES_DEFAULT: Operation =
    Operation::default("Retail prices", Auth::Scope("deliveries"));

pub(super) static RETAIL_PRICES: &[Operation] = &[
    Operation {
        target: HydraTarget::Path(&RETAIL_PRICE),
        method: "POST",
        path: "/api/retail_prices/calculate",
        operation_id: "calculateRetailPrice",
        summary: "Calculate the price of a delivery",
        description: "Creates no delivery. The price stays available at its `@id` until it \
            expires. A quote in `retailPrice` does not set this price, but one that is not the \
            store's is rejected.",
        parameters: TAX,
        expects: Expects::Resource(&DELIVERY, DELIVERY_EXAMPLE),
        returns: Returns::Resource(&RETAIL_PRICE),
        error_codes: &[
            &codes::PRICE_NOT_CALCULATED,
            &codes::EXTERNAL_REFERENCE_TAKEN,
        ],
        ..RETAIL_PRICES_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&RETAIL_PRICE),
        path: "/api/retail_prices/{token}",
        operation_id: "getRetailPrice",
        summary: "Get a calculated price",
        description: "Available until it expires.",
        parameters: TAX,
        returns: Returns::Resource(&RETAIL_PRICE),
        ..RETAIL_PRICES_DEFAULT
    },
];
