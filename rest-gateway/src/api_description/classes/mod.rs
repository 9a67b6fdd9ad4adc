//! The table of classes and their fields.

pub(super) mod api;
pub(super) mod deliveries;
pub(super) mod prices;
pub(super) mod stores;
pub(super) mod webhooks;

use super::Class;

pub(super) static ALL: &[&Class] = &[
    &deliveries::DELIVERY,
    &deliveries::TASK,
    &deliveries::ADDRESS,
    &deliveries::GEO_COORDINATES,
    &deliveries::PACKAGE,
    &deliveries::WARNING,
    &prices::PRICE,
    &prices::RETAIL_PRICE,
    &prices::TAX,
    &prices::RULE_OUTCOME,
    &stores::API_APP,
    &stores::STORE,
    &stores::TIME_SLOT,
    &stores::OPENING_HOURS,
    &stores::TIME_SLOT_CHOICES,
    &stores::TIME_SLOT_CHOICE,
    &webhooks::WEBHOOK,
    &webhooks::SECRET_ROTATION,
    &webhooks::EVENT,
    &webhooks::NOTIFICATION,
    &webhooks::ATTEMPT,
    &webhooks::RECOVERY,
    &webhooks::TEST_SEND,
    &api::ENTRYPOINT,
    &api::SETTINGS,
    &api::ERROR,
    &api::CONSTRAINT_VIOLATION_LIST,
    &api::CONSTRAINT_VIOLATION,
    &api::COLLECTION,
    &api::COLLECTION_VIEW,
    &api::IRI_TEMPLATE,
    &api::IRI_TEMPLATE_MAPPING,
];
