//! Prices and their calculation.

use crate::api_description::{
    Class, Field,
    Iri::SchemaOrg,
    Range::{Boolean, Enum, Instant, Integer, Link, Object, Text},
    enumerations,
};

pub(crate) static PRICE: Class = Class {
    name: "Price",
    description: "An amount of money with its tax.",
    fields: &[AMOUNT, CURRENCY, TAX_FIELD, QUOTE.nullable()],
    ..Class::EMBEDDED
};

pub(crate) static RETAIL_PRICE: Class = Class {
    name: "RetailPrice",
    description: "The quoted price of a delivery.",
    fields: &[
        AMOUNT,
        CURRENCY,
        TAX_FIELD,
        Field::new("expiresAt", Instant)
            .description("When the price expires.")
            .with_iri(SchemaOrg("expires")),
        Field::new("distance", Integer).description("The length of the route in metres."),
        Field::new("duration", Integer).description("The travel time in seconds."),
        DISTANCE_SOURCE,
        CALCULATION,
    ],
    ..Class::RESOURCE
};

/// Also a field of deliveries.
pub(super) const DISTANCE_SOURCE: Field =
    Field::new("distanceSource", Enum(&enumerations::DISTANCE_SOURCE)).nullable();
/// A field of a delivery's price, and of the request that uses the quote.
pub(super) const QUOTE: Field = Field::new("retailPrice", Link(Some(&RETAIL_PRICE))).description(
    "The quote that sets the delivery's price. A quote can be used once, before it \
            expires.",
);
const AMOUNT: Field =
    Field::new("amount", Integer).description("The amount in the minor unit of the currency.");
const CURRENCY: Field = Field::new("currency", Text)
    .schema_org()
    .description("The currency code (ISO 4217).");
const TAX_FIELD: Field = Field::new("tax", Object(&TAX));

pub(crate) static TAX: Class = Class {
    name: "Tax",
    description: "The tax in a price.",
    fields: &[
        AMOUNT,
        Field::new("included", Boolean)
            .description("Whether the price's `amount` includes the tax."),
    ],
    ..Class::EMBEDDED
};

pub(super) const CALCULATION: Field = Field::new("calculation", Object(&RULE_OUTCOME))
    .list()
    .description("The result of each rule of the price list.");

pub(crate) static RULE_OUTCOME: Class = Class {
    name: "RuleOutcome",
    description: "The result of one rule of a price list.",
    fields: &[
        Field::new("rule", Text).description("The rule's name."),
        Field::new("matched", Boolean).description("Whether the rule applies to the delivery."),
        Field::new("reason", Text).description("Why the rule applies or does not."),
        AMOUNT,
    ],
    ..Class::EMBEDDED
};
