//! Prices, and how they came about.

use crate::vocabulary::{
    Class, Field,
    Iri::{Own, Schema},
    Named, Presence,
    Range::{Boolean, Instant, Integer, Link, Object, Text},
};

pub(in crate::vocabulary) static PRICE: Class = Class {
    name: "Price",
    iri: Own("Price"),
    named: Named::Not,
    identified: Presence::Never,
    about: "An amount of money and the tax on it.",
    fields: &[AMOUNT, CURRENCY, TAX_OF_IT, PROMISE.nullable()],
};

pub(in crate::vocabulary) static RETAIL_PRICE: Class = Class {
    name: "RetailPrice",
    iri: Own("RetailPrice"),
    named: Named::Term,
    identified: Presence::Always,
    about: "What a delivery would cost.",
    fields: &[
        AMOUNT,
        CURRENCY,
        TAX_OF_IT,
        Field::new("expiresAt", Instant).means(Schema("expires")),
        Field::new("distance", Integer).about("Metres."),
        Field::new("duration", Integer).about("Seconds."),
        DISTANCE_SOURCE,
        CALCULATION,
    ],
};

/// Of a delivery, too.
pub(super) const DISTANCE_SOURCE: Field = Field::new("distanceSource", Text).nullable().about(
    "Who says how far it is: `osrm`, which knows the streets, or `straight_line`, an estimate.",
);
/// Of a delivery's price, and of the request that asks for it.
pub(super) const PROMISE: Field = Field::new("retailPrice", Link(Some(&RETAIL_PRICE)))
    .about("The promise that a delivery is charged by: used once, before it expires.");
const AMOUNT: Field = Field::new("amount", Integer).about("In the currency's minor unit.");
const CURRENCY: Field = Field::new("currency", Text).schema().about("ISO 4217.");
const TAX_OF_IT: Field = Field::new("tax", Object(&TAX));

pub(in crate::vocabulary) static TAX: Class = Class {
    name: "Tax",
    iri: Own("Tax"),
    named: Named::Not,
    identified: Presence::Never,
    about: "The tax part of a price.",
    fields: &[
        AMOUNT,
        Field::new("included", Boolean).about("Whether the price's amount includes it."),
    ],
};

pub(super) const CALCULATION: Field = Field::new("calculation", Object(&RULE_OUTCOME))
    .list()
    .about("How each rule of the price list fared.");

pub(in crate::vocabulary) static RULE_OUTCOME: Class = Class {
    name: "RuleOutcome",
    iri: Own("RuleOutcome"),
    named: Named::Not,
    identified: Presence::Never,
    about: "How a rule of a price list fared.",
    fields: &[
        Field::new("rule", Text).about("The rule's name."),
        Field::new("matched", Boolean),
        Field::new("reason", Text),
        AMOUNT,
    ],
};
