//! The amount that a matching rule adds, in whole minor units, with overflow checks.

use serde::Deserialize;

use super::{
    Totals,
    definition::{Measure, Packages, Strategy, unknown_package},
};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "a price is a whole number of minor units (499 is 4.99), or one of \
        { step, amount, every, above }, { per_package, amount, from, then } and { percent }, with \
        whole numbers, and as step \"distance\", \"duration\", \"weight\" or \"volume\""
)]
pub(super) enum Charge {
    Fixed(i64),
    /// `amount` for each started step of `every` beyond `above`.
    Step {
        #[serde(rename = "step")]
        measure: Measure,
        amount: i64,
        every: i64,
        #[serde(default)]
        above: i64,
    },
    /// `amount` for each package of a type.
    Package {
        #[serde(rename = "per_package")]
        kind: String,
        amount: i64,
    },
    /// `amount` for each package of a type before `from`, counted from 1, and `then` for others.
    DiscountedPackage {
        #[serde(rename = "per_package")]
        kind: String,
        amount: i64,
        from: i64,
        then: i64,
    },
    /// Multiplies the subtotal; in basis points: 11500 adds 15 %.
    Percent {
        percent: i64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChargeError {
    #[error("no {0} is given")]
    Missing(&'static str),
    #[error("there is no amount yet to take a percentage of")]
    NoSubtotal,
    #[error("the amount is too large")]
    Overflow,
}

/// 100 % in basis points.
const ONE_HUNDRED_PERCENT: i128 = 10_000;

impl Charge {
    /// What is wrong with the numbers and names of a price.
    pub(super) fn mistakes(
        &self,
        strategy: Strategy,
        packages: Option<&Packages>,
    ) -> impl Iterator<Item = String> {
        let wrong = |is_wrong: bool, message: &str| is_wrong.then(|| message.to_owned());
        let is_first = strategy == Strategy::First;
        let mistakes = match self {
            Self::Fixed(amount) => {
                let message = format!("{amount} is not a price: it must not be negative");
                [wrong(is_first && *amount < 0, &message), None]
            }
            Self::Step { every, above, .. } => [
                wrong(*every < 1, "a step must be above 0"),
                wrong(*above < 0, "`above` must not be negative"),
            ],
            Self::Package { kind, .. } => [unknown_package(packages, kind), None],
            Self::DiscountedPackage { kind, from, .. } => [
                unknown_package(packages, kind),
                wrong(*from < 1, "`from` must be at least 1"),
            ],
            Self::Percent { percent } => [
                wrong(*percent < 0, "percent must not be negative"),
                wrong(
                    is_first,
                    "percent needs strategy = \"sum\": in \"first\" there is no subtotal",
                ),
            ],
        };
        mistakes.into_iter().flatten()
    }

    /// The amount to add to a subtotal.
    pub(super) fn amount(
        &self,
        totals: &Totals,
        subtotal: Option<i64>,
    ) -> Result<i64, ChargeError> {
        let amount = match self {
            Self::Fixed(amount) => i128::from(*amount),
            Self::Step {
                measure,
                amount,
                every,
                above,
            } => {
                let value = totals
                    .measure(*measure)
                    .ok_or(ChargeError::Missing(measure.name()))?;
                let beyond = (i128::from(value) - i128::from(*above)).max(0);
                let every = i128::from(*every);
                ((beyond + every - 1) / every)
                    .checked_mul(i128::from(*amount))
                    .ok_or(ChargeError::Overflow)?
            }
            Self::Package { kind, amount } => {
                i128::from(totals.package_count(kind)) * i128::from(*amount)
            }
            Self::DiscountedPackage {
                kind,
                amount,
                from,
                then,
            } => {
                let count = totals.package_count(kind);
                let full = count.min(from - 1);
                i128::from(full) * i128::from(*amount)
                    + i128::from(count - full) * i128::from(*then)
            }
            Self::Percent { percent } => {
                let subtotal = subtotal.ok_or(ChargeError::NoSubtotal)?;
                let product = i128::from(subtotal) * i128::from(*percent);
                let rounded = (product.abs() + ONE_HUNDRED_PERCENT / 2) / ONE_HUNDRED_PERCENT
                    * product.signum();
                rounded - i128::from(subtotal)
            }
        };
        i64::try_from(amount).map_err(|_| ChargeError::Overflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(measure: Measure, amount: i64, every: i64, above: i64) -> Charge {
        Charge::Step {
            measure,
            amount,
            every,
            above,
        }
    }

    #[test]
    fn a_fixed_price_of_one_rule_may_be_zero_but_not_negative() {
        let fixed = |amount, strategy| {
            let charge = Charge::Fixed(amount);
            charge.mistakes(strategy, None).count() == 0
        };
        assert!(fixed(0, Strategy::First) && fixed(-1, Strategy::Sum));
        assert!(!fixed(-1, Strategy::First));
    }

    #[test]
    fn each_started_step_above_the_threshold_is_charged() {
        let charge = step(Measure::Distance, 450, 2000, 2500);
        for (meters, expected) in [
            (0, 0),
            (1500, 0),
            (2500, 0),
            (2501, 450),
            (3000, 450),
            (4000, 450),
            (4500, 450),
            (4501, 900),
            (5500, 900),
            (12_000, 2250),
        ] {
            let totals = Totals {
                meters,
                ..Totals::default()
            };
            assert_eq!(charge.amount(&totals, None), Ok(expected), "{meters} m");
        }
    }

    #[test]
    fn steps_of_weight_are_charged_and_a_missing_weight_is_an_error() {
        let charge = step(Measure::Weight, 360, 40_000, 40_000);
        for (kilograms, expected) in [(35, 0), (45, 360), (80, 360), (81, 720)] {
            let totals = Totals {
                weight: Some(kilograms * 1000),
                ..Totals::default()
            };
            assert_eq!(charge.amount(&totals, None), Ok(expected), "{kilograms} kg");
        }
        assert_eq!(
            charge.amount(&Totals::default(), None),
            Err(ChargeError::Missing("weight"))
        );
    }

    #[test]
    fn packages_are_discounted_from_the_nth_on() {
        let charge = Charge::DiscountedPackage {
            kind: "XL".into(),
            amount: 1240,
            from: 2,
            then: 420,
        };
        for (count, expected) in [(0, 0), (1, 1240), (2, 1660), (4, 2500)] {
            let totals = Totals {
                packages: [("XL".to_owned(), count)].into(),
                ..Totals::default()
            };
            assert_eq!(
                charge.amount(&totals, None),
                Ok(expected),
                "{count} packages"
            );
        }
    }

    #[test]
    fn a_percentage_is_of_the_subtotal_rounded_half_away_from_zero() {
        for (subtotal, percent, expected) in [
            (500, 11_500, 75),
            (575, 8_500, -86),
            (500, 8_500, -75),
            (500, 10_000, 0),
            (1, 15_000, 1),
            (1, 14_999, 0),
            (-1, 15_000, -1),
            // Ties that rounding half to even decides otherwise.
            (1, 5_000, 0),
            (-1, 5_000, 0),
            (1, 25_000, 2),
            (-1, 25_000, -2),
            (500, 0, -500),
        ] {
            assert_eq!(
                Charge::Percent { percent }.amount(&Totals::default(), Some(subtotal)),
                Ok(expected),
                "{percent} of {subtotal}"
            );
        }
        assert_eq!(
            Charge::Percent { percent: 11_500 }.amount(&Totals::default(), None),
            Err(ChargeError::NoSubtotal)
        );
    }

    #[test]
    fn amounts_too_large_are_errors() {
        let huge = Totals {
            meters: i64::MAX,
            weight: Some(i64::MAX),
            packages: [("XL".to_owned(), i64::MAX)].into(),
            ..Totals::default()
        };
        for charge in [
            step(Measure::Distance, i64::MAX, 1, 0),
            step(Measure::Weight, i64::MIN, 1, 0),
            Charge::Package {
                kind: "XL".into(),
                amount: i64::MAX,
            },
            Charge::Percent { percent: i64::MAX },
        ] {
            assert_eq!(
                charge.amount(&huge, Some(i64::MAX)),
                Err(ChargeError::Overflow),
                "{charge:?}"
            );
        }
    }
}
