//! Prints the explanation of a price, rule by rule.

use proto::{Price, PriceExplanation};
use rest_gateway::Currency;
use serde::Serialize;

use crate::cli::output::{self, Resource};

#[derive(Serialize)]
struct Explanation {
    price: Option<ExplainedPrice>,
    currency: String,
    /// Metres.
    distance: u32,
    /// Seconds.
    duration: u32,
    distance_source: &'static str,
    calculation: Vec<Outcome>,
}

/// A price, in minor units.
#[derive(Serialize)]
struct ExplainedPrice {
    amount: i64,
    net: i64,
    tax: i64,
}

#[derive(Serialize)]
struct Outcome {
    rule: String,
    matched: bool,
    reason: String,
    amount: i64,
    /// The amount with the currency's decimals.
    #[serde(skip)]
    decimal: String,
}

/// Prints a table of the rules and the price, or JSON.
pub(crate) fn print(json: bool, explained: PriceExplanation) -> anyhow::Result<()> {
    let currency = explained.currency_code.clone();
    let explanation = Explanation::from(explained);
    if json {
        return output::document(&explanation);
    }
    output::many(false, &explanation.calculation)?;
    let price = match &explanation.price {
        Some(price) => format!(
            "{} {currency}, of which {} tax",
            decimal(price.amount, &currency),
            decimal(price.tax, &currency)
        ),
        None => "none".to_owned(),
    };
    output::text(&format!(
        "\nprice     {price}\ndistance  {} m ({})\nduration  {} s\n",
        explanation.distance, explanation.distance_source, explanation.duration
    ))
}

impl From<PriceExplanation> for Explanation {
    fn from(explained: PriceExplanation) -> Self {
        let distance_source = match explained.distance_source() {
            proto::DistanceSource::Osrm => "osrm",
            proto::DistanceSource::StraightLine | proto::DistanceSource::Unspecified => {
                "straight_line"
            }
        };
        let currency = explained.currency_code;
        let rules = explained.calculation.into_iter().map(|outcome| Outcome {
            decimal: decimal(outcome.amount, &currency),
            rule: outcome.rule,
            matched: outcome.matched,
            reason: outcome.reason,
            amount: outcome.amount,
        });
        Self {
            price: explained.price.as_ref().map(ExplainedPrice::from),
            distance: explained.distance_meters,
            duration: explained.duration_seconds,
            distance_source,
            calculation: rules.collect(),
            currency,
        }
    }
}

impl From<&Price> for ExplainedPrice {
    fn from(price: &Price) -> Self {
        Self {
            amount: price.net_amount.saturating_add(price.tax_amount),
            net: price.net_amount,
            tax: price.tax_amount,
        }
    }
}

impl Resource for Outcome {
    fn fields(&self) -> Vec<(&'static str, String)> {
        vec![
            ("rule", self.rule.clone()),
            (
                "matched",
                if self.matched { "yes" } else { "no" }.to_owned(),
            ),
            ("amount", self.decimal.clone()),
            ("reason", self.reason.clone()),
        ]
    }
}

/// Formats an amount of minor units: 499 is 4.99 EUR, 499 JPY and 0.499 KWD.
fn decimal(amount: i64, currency: &str) -> String {
    let exponent = Currency::from_code(currency)
        .and_then(Currency::exponent)
        .unwrap_or(0);
    let digits = usize::from(exponent);
    let sign = if amount < 0 { "-" } else { "" };
    let padded = format!("{:0width$}", amount.unsigned_abs(), width = digits + 1);
    let (whole, fraction) = padded.split_at(padded.len() - digits);
    if digits == 0 {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_its_currencys_decimals() {
        for (amount, currency, expected) in [
            (499, "EUR", "4.99"),
            (5, "EUR", "0.05"),
            (-5, "EUR", "-0.05"),
            (0, "EUR", "0.00"),
            (499, "JPY", "499"),
            (499, "KWD", "0.499"),
            (i64::MIN, "EUR", "-92233720368547758.08"),
        ] {
            assert_eq!(decimal(amount, currency), expected);
        }
    }
}
