//! The amount that a matching rule adds, in whole minor units, with overflow checks.

use toml::{Spanned, de::DeValue};

use super::{
    definition::{Measure, Strategy},
    totals::Totals,
};
use crate::definition::Fields;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Charge {
    Fixed(i64),
    /// `amount` for each started step of `every` beyond `above`.
    Step {
        measure: Measure,
        amount: i64,
        every: i64,
        above: i64,
    },
    /// `amount` for each package of a type; with a discount, another amount for later packages.
    Package {
        kind: String,
        amount: i64,
        discount: Option<Discount>,
    },
    /// Multiplies the subtotal; in basis points: 11500 adds 15 %.
    Percent(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Discount {
    /// The first package at the discounted amount, counted from 1.
    pub(super) from: i64,
    /// The discounted amount.
    pub(super) then: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ChargeError {
    #[error("no {0} is given")]
    Missing(&'static str),
    /// Of a percentage.
    #[error("there is no amount yet to take a percentage of")]
    NoSubtotal,
    #[error("the amount is too large")]
    Overflow,
}

/// 100 % in basis points.
const ONE_HUNDRED_PERCENT: i128 = 10_000;

impl Charge {
    /// Reads the price of a rule: a fixed amount, or a table of one of the other forms.
    pub(super) fn read(
        rule: &mut Fields<'_, '_>,
        strategy: Strategy,
        is_package: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let price = rule.require_value("price")?;
        let span = price.span();
        match price.get_ref() {
            DeValue::Integer(_) => {
                let amount = rule.value(price)?;
                if amount < 0 && strategy == Strategy::First {
                    let message = format!("{amount} is not a price: it must not be negative");
                    return rule.reject(span, message);
                }
                Some(Self::Fixed(amount))
            }
            DeValue::Table(_) => {
                let mut table = rule.fields(price, "price")?;
                Self::read_table(&mut table, strategy, is_package)
            }
            _ => rule.reject(
                span,
                "a price is a whole number of minor units (499 is 4.99), or a table",
            ),
        }
    }

    fn read_table(
        table: &mut Fields<'_, '_>,
        strategy: Strategy,
        is_package: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let mistakes_before = table.mistake_count();
        let field_count = table.table.len();
        let percent_span = table.table.get("percent").map_or(0..0, Spanned::span);
        let step = table.optional("step");
        let every = table.at_least("every", 1, "a step must be above 0");
        let above = table.at_least("above", 0, "`above` must not be negative");
        let per_package: Option<Spanned<String>> = table.optional("per_package");
        let from = table.at_least("from", 1, "`from` must be at least 1");
        let then = table.optional("then");
        let amount = table.optional("amount");
        let percent = table.at_least("percent", 0, "percent must not be negative");
        table.reject_unknown_fields("step, amount, every, above, per_package, from, then, percent");
        // With a value missing, the form of the price is unknown.
        if table.mistake_count() > mistakes_before {
            return None;
        }

        let discount = from.zip(then);
        let above_fields = usize::from(above.is_some());
        let discount_fields = if discount.is_some() { 2 } else { 0 };
        match (step.zip(every), per_package, percent, amount) {
            (Some((measure, every)), None, None, Some(amount))
                if field_count == 3 + above_fields =>
            {
                Some(Self::Step {
                    measure,
                    amount,
                    every,
                    above: above.unwrap_or_default(),
                })
            }
            (None, Some(kind), None, Some(amount)) if field_count == 2 + discount_fields => {
                if !is_package(kind.get_ref()) {
                    let message = format!(
                        "unknown package \"{}\": add it to [packages]",
                        kind.get_ref()
                    );
                    return table.reject(kind.span(), message);
                }
                Some(Self::Package {
                    kind: kind.into_inner(),
                    amount,
                    discount: discount.map(|(from, then)| Discount { from, then }),
                })
            }
            (None, None, Some(percent), None) if field_count == 1 => {
                if strategy == Strategy::First {
                    let message =
                        "percent needs strategy = \"sum\": in \"first\" there is no subtotal";
                    return table.reject(percent_span, message);
                }
                Some(Self::Percent(percent))
            }
            _ => table.reject(
                table.span.clone(),
                "a price is a number of minor units, or one of { step, amount, every, above }, \
                 { per_package, amount, from, then } and { percent }",
            ),
        }
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
            Self::Package {
                kind,
                amount,
                discount,
            } => {
                let count = totals.package_count(kind);
                let full = discount
                    .as_ref()
                    .map_or(count, |discount| count.min(discount.from - 1));
                let then = discount.as_ref().map_or(0, |discount| discount.then);
                i128::from(full) * i128::from(*amount) + i128::from(count - full) * i128::from(then)
            }
            Self::Percent(percent) => {
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
    use crate::definition::read_toml;

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
            let text = format!("price = {amount}");
            let read = read_toml(&text, 1, |mut rule| {
                Charge::read(&mut rule, strategy, |_| true)
            });
            read == Ok(Charge::Fixed(amount))
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
        let charge = Charge::Package {
            kind: "XL".into(),
            amount: 1240,
            discount: Some(Discount { from: 2, then: 420 }),
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
                Charge::Percent(percent).amount(&Totals::default(), Some(subtotal)),
                Ok(expected),
                "{percent} of {subtotal}"
            );
        }
        assert_eq!(
            Charge::Percent(11_500).amount(&Totals::default(), None),
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
                discount: None,
            },
            Charge::Percent(i64::MAX),
        ] {
            assert_eq!(
                charge.amount(&huge, Some(i64::MAX)),
                Err(ChargeError::Overflow),
                "{charge:?}"
            );
        }
    }
}
