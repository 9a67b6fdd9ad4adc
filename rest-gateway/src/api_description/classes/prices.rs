//! Prices and their calculation.

use crate::api_description::{
    Class, Field,
    Iri::{Api, SchemaOrg},
    Presence,
    Range::{Boolean, Enum, Instant, Integer, Link, Object, Text},
    TypeName, enumerations,
};

pub(in crate::api_description) static PRICE: Class = Class {
    name: "Price",
    iri: Api("Price"),
    type_name: TypeName::None,
    id_presence: Presence::Never,
    description: "An amount of money with its tax.",
    fields: &[AMOUNT, CURRENCY, TAX_FIELD, QUOTE.nullable()],
};

pub(in crate::api_description) static RETAIL_PRICE: Class = Class {
    name: "RetailPrice",
    iri: Api("RetailPrice"),
    type_name: TypeName::Term,
    id_presence: Presence::Always,
    description: "The quoted price of a delivery.",
    fields: &[
        AMOUNT,
        CURRENCY,
        TAX_FIELD,
        Field::new("expiresAt", Instant)
            .description("When the price expires.")
            .iri(SchemaOrg("expires")),
        Field::new("distance", Integer).description("The length of the route in metres."),
        Field::new("duration", Integer).description("The travel time in seconds."),
        DISTANCE_SOURCE,
        CALCULATION,
    ],
};

/// Also a field of deliveries.
pub(super) const DISTANCE_SOURCE: Field =
    Field::new("distanceSource", Enum(&enumerations::DISTANCE_SOURCE)).nullable();
/// A field of a delivery's price, and of the request that uses the quote.
pub(super) const QUOTE: Field = Field::new("retailPrice", Link(Some(&RETAIL_PRICE)))
    .request_schema(
        r#"{
            "type": ["string", "null"],
            "pattern": "^(/api/)?retail_prices/[A-Za-z0-9_-]{64,}$"
        }"#,
    )
    .description(
        "The quote that sets the delivery's price. A quote can be used once, before it \
            expires.",
    );
const AMOUNT: Field =
    Field::new("amount", Integer).description("The amount in the minor unit of the currency.");
const CURRENCY: Field = Field::new("currency", Text)
    .schema_org()
    .description("The currency code (ISO 4217).");
const TAX_FIELD: Field = Field::new("tax", Object(&TAX));

pub(in crate::api_description) static TAX: Class = Class {
    name: "Tax",
    iri: Api("Tax"),
    type_name: TypeName::None,
    id_presence: Presence::Never,
    description: "The tax in a price.",
    fields: &[
        AMOUNT,
        Field::new("included", Boolean)
            .description("Whether the price's `amount` includes the tax."),
    ],
};

pub(super) const CALCULATION: Field = Field::new("calculation", Object(&RULE_OUTCOME))
    .list()
    .description("The result of each rule of the price list.");

pub(in crate::api_description) static RULE_OUTCOME: Class = Class {
    name: "RuleOutcome",
    iri: Api("RuleOutcome"),
    type_name: TypeName::None,
    id_presence: Presence::Never,
    description: "The result of one rule of a price list.",
    fields: &[
        Field::new("rule", Text).description("The rule's name."),
        Field::new("matched", Boolean).description("Whether the rule applies to the delivery."),
        Field::new("reason", Text).description("Why the rule applies or does not."),
        AMOUNT,
    ],
};
