//! Deliveries.

use super::{Expects, Needs, On, Operation, Parameter, READ, Returns};
use crate::{
    error_codes::{self as codes, ErrorCode},
    vocabulary::classes::deliveries::DELIVERY,
};

const SUBJECT: &str = "Deliveries";

pub(super) const DRAFT: &str = r#"{
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

/// If it names a price it was promised, or has a name of the store's.
const OF_A_DRAFT: &[&ErrorCode] = &[
    &codes::EXTERNAL_REFERENCE_TAKEN,
    &codes::PRICE_MISMATCH,
    &codes::PRICE_EXPIRED,
    &codes::PRICE_USED,
];

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Collection("delivery"),
        method: "POST",
        path: "/api/deliveries",
        id: "createDelivery",
        title: "Creates a delivery",
        about: "The dropoff needs an address and a time, `before` or `timeSlot`. Without a pickup \
                the parcel is fetched at the client's default address. If the request breaks \
                rules, all of them are named at once.",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        expects: Expects::Resource(&DELIVERY, DRAFT),
        parameters: &[Parameter::IDEMPOTENCY_KEY],
        returns: Returns::Created(&DELIVERY),
        refusals: OF_A_DRAFT,
    },
    Operation {
        on: On::Collection("delivery"),
        path: "/api/deliveries",
        id: "listDeliveries",
        title: "Lists the store's deliveries, newest first",
        about: "A page at a time; `hydra:view` links to the others. Nothing is skipped or shown \
                twice while other deliveries are created.",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        parameters: &[
            Parameter {
                name: "itemsPerPage",
                place: "query",
                about: "How many deliveries a page has.",
                schema: r#"{"type": "integer", "minimum": 1, "maximum": 100, "default": 30}"#,
            },
            Parameter {
                name: "cursor",
                place: "query",
                about: "The place where a page begins, taken from a link in `hydra:view`.",
                schema: r#"{"type": "string"}"#,
            },
            Parameter {
                name: "externalReference",
                place: "query",
                about: "The delivery that the store calls so.",
                schema: r#"{"type": "string", "minLength": 1}"#,
            },
            Parameter {
                name: "createdAt[after]",
                place: "query",
                about: "Those created at this time or later; also in words, such as `yesterday`.",
                schema: r#"{"type": "string"}"#,
            },
            Parameter {
                name: "createdAt[before]",
                place: "query",
                about: "Those created at this time or earlier; also in words.",
                schema: r#"{"type": "string"}"#,
            },
            Parameter {
                name: "dropoff.before[after]",
                place: "query",
                about: "Those whose dropoff's `before` is this time or later.",
                schema: r#"{"type": "string"}"#,
            },
            Parameter {
                name: "dropoff.before[before]",
                place: "query",
                about: "Those whose dropoff's `before` is this time or earlier.",
                schema: r#"{"type": "string"}"#,
            },
            Parameter {
                name: "status",
                place: "query",
                about: "`DONE`: those whose tasks are both done; `TODO`: the others.",
                schema: r#"{"type": "string", "enum": ["TODO", "DONE"]}"#,
            },
            Parameter {
                name: "exists[cancelledAt]",
                place: "query",
                about: "Those that are cancelled, or those that are not.",
                schema: r#"{"type": "string", "enum": ["true", "false", "1", "0"]}"#,
            },
        ],
        returns: Returns::Members(&DELIVERY),
        ..READ
    },
    Operation {
        on: On::Path(&DELIVERY),
        method: "POST",
        path: "/api/deliveries/assert",
        id: "assertDelivery",
        title: "Tells whether a delivery would be accepted, without creating it",
        about: "The answer is the delivery as it would be, without `@id`.",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        expects: Expects::Resource(&DELIVERY, DRAFT),
        returns: Returns::Preview(&DELIVERY),
        refusals: OF_A_DRAFT,
        ..READ
    },
    Operation {
        on: On::Resource(&DELIVERY),
        path: "/api/deliveries/{id}",
        id: "getDelivery",
        title: "Reads a delivery",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        returns: Returns::Resource(&DELIVERY),
        ..READ
    },
    Operation {
        on: On::Resource(&DELIVERY),
        method: "DELETE",
        path: "/api/deliveries/{id}",
        id: "cancelDelivery",
        title: "Cancels a delivery",
        about: "Possible while none of its tasks is done. Cancelling again changes nothing.",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        returns: Returns::Nothing,
        refusals: &[&codes::TASK_DONE],
        ..READ
    },
];
