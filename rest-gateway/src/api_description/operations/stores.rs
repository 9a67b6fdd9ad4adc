//! Time slots, stores, the calling client and the platform's settings.

use super::{
    operation::{Auth, HydraTarget, Operation, Returns},
    parameters::Parameter,
};
use crate::{
    api_description::classes::{
        api::SETTINGS,
        stores::{API_APP, STORE, TIME_SLOT, TIME_SLOT_CHOICES},
    },
    error_codes as codes,
};

const LANGUAGE: &[Parameter] = &[Parameter::header(
    "Accept-Language",
    "The preferred languages of labels. If none is supported, labels are in the \
        platform's language.",
    r#"{"type": "string", "examples": ["fr"]}"#,
)];

const TIME_SLOTS_DEFAULT: Operation = Operation::default("Time slots", Auth::Scope("deliveries"));

pub(super) static TIME_SLOTS: &[Operation] = &[
    Operation {
        target: HydraTarget::Path(&TIME_SLOT_CHOICES),
        path: "/api/time_slots/choices",
        operation_id: "listDefaultTimeSlotChoices",
        summary: "List the choices of the store's default time slot",
        description: "Send the `value` of a choice as the `timeSlot` of a task.",
        parameters: LANGUAGE,
        returns: Returns::Resource(&TIME_SLOT_CHOICES),
        error_codes: &[&codes::NOT_FOUND],
        ..TIME_SLOTS_DEFAULT
    },
    Operation {
        target: HydraTarget::Path(&TIME_SLOT_CHOICES),
        path: "/api/time_slots/{id}/choices",
        operation_id: "listTimeSlotChoices",
        summary: "List the choices of a time slot",
        description: "Send the `value` of a choice as the `timeSlot` of a task.",
        parameters: LANGUAGE,
        returns: Returns::Resource(&TIME_SLOT_CHOICES),
        ..TIME_SLOTS_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&TIME_SLOT),
        path: "/api/time_slots/{id}",
        operation_id: "getTimeSlot",
        summary: "Get a time slot",
        description: "The name and the opening hours. The choices are at `/api/time_slots/{id}/choices`.",
        returns: Returns::Resource(&TIME_SLOT),
        ..TIME_SLOTS_DEFAULT
    },
];

const STORES_DEFAULT: Operation = Operation::default("Stores", Auth::None);

pub(super) static STORES: &[Operation] = &[
    Operation {
        target: HydraTarget::Path(&API_APP),
        path: "/api/me",
        operation_id: "getMe",
        summary: "Get the calling client",
        description: "The client's name and store. Use it to check a token.",
        auth: Auth::Token,
        returns: Returns::Resource(&API_APP),
        ..STORES_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&API_APP),
        path: "/api/api_apps/{id}",
        operation_id: "getApiApp",
        summary: "Get the calling client by its id",
        description: "A client can read itself only.",
        auth: Auth::Token,
        returns: Returns::Resource(&API_APP),
        ..STORES_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&STORE),
        path: "/api/stores/{id}",
        operation_id: "getStore",
        summary: "Get the client's store",
        description: "The store's address and time slots.",
        auth: Auth::Scope("deliveries"),
        returns: Returns::Resource(&STORE),
        ..STORES_DEFAULT
    },
    Operation {
        target: HydraTarget::Resource(&SETTINGS),
        path: "/api/settings",
        operation_id: "getSettings",
        summary: "Get platform settings",
        description: "Country, locale, currency, time zone and map centre of the platform.",
        returns: Returns::Resource(&SETTINGS),
        ..STORES_DEFAULT
    },
];
