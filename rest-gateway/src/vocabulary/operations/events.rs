//! What happened.

use super::{Needs, On, Operation, Parameter, READ, Returns, webhooks::OF_A_STORE};
use crate::{error_codes as codes, vocabulary::classes::shop::EVENT};

const SUBJECT: &str = "Events";

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Collection("event"),
        path: "/api/events",
        id: "listEvents",
        title: "Lists what happened in the store, in order",
        about: "Numbered 1, 2, 3 without gaps: who remembers the last number misses nothing.",
        subject: SUBJECT,
        needs: Needs::Token,
        parameters: &[
            Parameter {
                name: "after",
                place: "query",
                about: "The number after which the page begins; the oldest there are, without.",
                schema: r#"{"type": "integer", "minimum": 0}"#,
            },
            Parameter {
                name: "itemsPerPage",
                place: "query",
                about: "How many a page has.",
                schema: r#"{"type": "integer", "minimum": 1, "maximum": 100, "default": 30}"#,
            },
        ],
        returns: Returns::Members(&EVENT),
        refusals: &[
            &codes::INSUFFICIENT_SCOPE,
            &codes::NO_STORE,
            &codes::EVENTS_EXPIRED,
        ],
        ..READ
    },
    Operation {
        on: On::Resource(&EVENT),
        path: "/api/events/{id}",
        id: "getEvent",
        title: "Reads an event",
        subject: SUBJECT,
        needs: Needs::Token,
        returns: Returns::Resource(&EVENT),
        refusals: OF_A_STORE,
        ..READ
    },
];
