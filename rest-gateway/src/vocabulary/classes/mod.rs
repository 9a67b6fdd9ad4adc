//! The table of every class whose objects answers contain, and of every field they have.

pub(super) mod api;
pub(super) mod deliveries;
pub(super) mod notifications;
pub(super) mod prices;
pub(super) mod shop;

use super::{Class, Field, Iri::Schema, Range::Text};

/// Every class.
pub(super) static ALL: &[&Class] = &[
    &deliveries::DELIVERY,
    &deliveries::TASK,
    &deliveries::PLACE,
    &deliveries::GEO_COORDINATES,
    &deliveries::PACKAGE,
    &prices::PRICE,
    &prices::RETAIL_PRICE,
    &prices::TAX,
    &prices::RULE_OUTCOME,
    &shop::API_APP,
    &shop::STORE,
    &shop::TIME_SLOT,
    &shop::OPENING_HOURS,
    &shop::TIME_SLOT_CHOICES,
    &shop::TIME_SLOT_CHOICE,
    &shop::WEBHOOK,
    &shop::SECRET_ROTATION,
    &shop::EVENT,
    &notifications::NOTIFICATION,
    &notifications::ATTEMPT,
    &notifications::RECOVERY,
    &notifications::TEST,
    &api::ENTRYPOINT,
    &api::SETTINGS,
    &api::ERROR,
    &api::CONSTRAINT_VIOLATION_LIST,
    &api::CONSTRAINT_VIOLATION,
    &api::COLLECTION,
    &api::COLLECTION_VIEW,
];

const ID: Field = Field::new("id", Text)
    .means(Schema("identifier"))
    .about("The last part of `@id`.");

const NAME: Field = Field::new("name", Text).schema();
