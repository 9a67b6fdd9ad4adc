//! The form of a price list's definition.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::charge::Charge;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Definition {
    pub(super) currency: Spanned<String>,
    pub(super) tax: Tax,
    pub(super) strategy: Strategy,
    pub(super) quote_expiry: Option<Spanned<String>>,
    pub(super) packages: Option<Packages>,
    #[serde(default)]
    pub(super) rule: Vec<RuleDefinition>,
}

/// The name is required, and not used.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tax {
    #[serde(rename = "name")]
    _name: String,
    pub(super) rate: Spanned<i64>,
}

/// The packages that rules can count, by type.
pub(super) type Packages = BTreeMap<Spanned<String>, Package>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    pub(super) volume: Option<i64>,
}

/// The message for a package of a type that the list does not name.
pub(super) fn unknown_package(packages: Option<&Packages>, kind: &str) -> Option<String> {
    let is_known = packages.is_some_and(|packages| packages.contains_key(kind));
    (!is_known).then(|| format!("unknown package \"{kind}\": add it to [packages]"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleDefinition {
    pub(super) name: Spanned<String>,
    pub(super) when: Spanned<String>,
    #[serde(default, rename = "for")]
    pub(super) target: Target,
    pub(super) price: Spanned<Charge>,
}

/// How rules combine into a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Strategy {
    /// The first matching rule sets the price.
    First,
    /// All matching rules add to the price.
    Sum,
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
