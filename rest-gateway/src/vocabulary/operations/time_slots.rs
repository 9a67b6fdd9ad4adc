//! Time slots and what they offer.

use super::{Needs, On, Operation, Parameter, READ, Returns};
use crate::{
    error_codes as codes,
    vocabulary::classes::shop::{TIME_SLOT, TIME_SLOT_CHOICES},
};

const SUBJECT: &str = "Time slots";

const LANGUAGE: &[Parameter] = &[Parameter {
    name: "Accept-Language",
    place: "header",
    about: "The languages in which a label may be, the platform's if it has none of them.",
    schema: r#"{"type": "string", "examples": ["fr"]}"#,
}];

pub(super) static ALL: &[Operation] = &[
    Operation {
        on: On::Path(&TIME_SLOT_CHOICES),
        path: "/api/time_slots/choices",
        id: "listDefaultTimeSlotChoices",
        title: "Lists what the store's default time slot offers now",
        about: "The `value` of a choice is what a task takes as its `timeSlot`.",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        parameters: LANGUAGE,
        returns: Returns::Resource(&TIME_SLOT_CHOICES),
        refusals: &[&codes::NOT_FOUND],
        ..READ
    },
    Operation {
        on: On::Path(&TIME_SLOT_CHOICES),
        path: "/api/time_slots/{id}/choices",
        id: "listTimeSlotChoices",
        title: "Lists what a time slot offers now",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        parameters: LANGUAGE,
        returns: Returns::Resource(&TIME_SLOT_CHOICES),
        ..READ
    },
    Operation {
        on: On::Resource(&TIME_SLOT),
        path: "/api/time_slots/{id}",
        id: "getTimeSlot",
        title: "Reads a time slot",
        subject: SUBJECT,
        needs: Needs::Scope("deliveries"),
        returns: Returns::Resource(&TIME_SLOT),
        ..READ
    },
];
