//! The values of a price list's definition.

use serde::Deserialize;

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
