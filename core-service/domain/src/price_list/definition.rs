//! The TOML structure of a price list; `parse` checks its values.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Deserializer, de};
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    pub(super) currency: Spanned<String>,
    pub(super) tax: Tax,
    pub(super) strategy: Strategy,
    pub(super) quote_expiry: Option<Spanned<String>>,
    pub(super) packages: Option<BTreeMap<String, Package>>,
    #[serde(default, rename = "rule")]
    pub(super) rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tax {
    pub(super) name: String,
    /// Basis points.
    pub(super) rate: Spanned<i64>,
}

/// How rules combine into a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// The first matching rule sets the price.
    First,
    /// All matching rules add to the price.
    Sum,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    #[serde(default)]
    pub(super) volume: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub(super) name: Spanned<String>,
    pub(super) when: Spanned<String>,
    #[serde(default, rename = "for")]
    pub(super) target: Target,
    pub(super) price: Spanned<RulePrice>,
}

/// What a rule is evaluated for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Target {
    #[default]
    Delivery,
    /// Each of the two tasks.
    Task,
}

/// The price of a rule: a fixed amount, or a table of one of the forms of `Charge`.
pub(super) enum RulePrice {
    Fixed(i64),
    Table(Box<PriceTable>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceTable {
    pub(super) step: Option<Measure>,
    pub(super) every: Option<Spanned<i64>>,
    pub(super) above: Option<Spanned<i64>>,
    pub(super) per_package: Option<Spanned<String>>,
    pub(super) from: Option<Spanned<i64>>,
    pub(super) then: Option<i64>,
    pub(super) amount: Option<i64>,
    pub(super) percent: Option<Spanned<i64>>,
}

/// The quantity that steps are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Measure {
    /// Metres.
    Distance,
    /// Seconds.
    Duration,
    /// Grams.
    Weight,
    /// In the units of `[packages]`.
    Volume,
}

impl Measure {
    pub(super) const ALL: [Self; 4] = [Self::Distance, Self::Duration, Self::Weight, Self::Volume];

    /// The name of the CEL variable.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Distance => "distance",
            Self::Duration => "duration",
            Self::Weight => "weight",
            Self::Volume => "volume",
        }
    }
}

// Not `#[serde(untagged)]`: its errors have neither a cause nor a position.
impl<'de> Deserialize<'de> for RulePrice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = RulePrice;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of minor units (499 is 4.99), or a table")
            }

            fn visit_i64<E: de::Error>(self, amount: i64) -> Result<RulePrice, E> {
                Ok(RulePrice::Fixed(amount))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<RulePrice, A::Error> {
                PriceTable::deserialize(de::value::MapAccessDeserializer::new(map))
                    .map(|table| RulePrice::Table(Box::new(table)))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
