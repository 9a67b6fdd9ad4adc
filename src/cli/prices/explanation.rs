//! Prints the explanation of a price, rule by rule.

use proto::{DistanceSource, PriceExplanation};
use rest_gateway::Currency;
use serde_json::json;

use crate::cli::output::{self, View};

/// Prints a table of the rules and the price, or JSON. Distances are in metres, durations in seconds.
pub(crate) fn print(json: bool, explained: PriceExplanation) -> anyhow::Result<()> {
    let distance_source = match explained.distance_source() {
        DistanceSource::Osrm => "osrm",
        DistanceSource::StraightLine | DistanceSource::Unspecified => "straight_line",
    };
    let PriceExplanation {
        price,
        currency_code: currency,
        calculation: rules,
        distance_meters: distance,
        duration_seconds: duration,
        ..
    } = explained;
    let decimal = |amount| decimal(amount, &currency);
    let price = price.map(|price| {
        let amount = price.net_amount.saturating_add(price.tax_amount);
        (amount, price.net_amount, price.tax_amount)
    });
    if json {
        let price =
            price.map(|(amount, net, tax)| json!({"amount": amount, "net": net, "tax": tax}));
        let rules = rules.iter().map(|rule| {
            json!({
                "rule": rule.rule,
                "matched": rule.matched,
                "reason": rule.reason,
                "amount": rule.amount,
            })
        });
        let explanation = View::default()
            .json("price", price)
            .json("currency", &*currency)
            .json("distance", distance)
            .json("duration", duration)
            .json("distance_source", distance_source)
            .json("calculation", rules.collect::<Vec<_>>());
        return output::document(&explanation);
    }
    let rule = |rule: &proto::RuleOutcome| {
        View::default()
            .text("rule", &*rule.rule)
            .text("matched", if rule.matched { "yes" } else { "no" })
            .text("amount", decimal(rule.amount))
            .text("reason", &*rule.reason)
    };
    output::many(false, rules.iter().map(rule))?;
    let price = match price {
        Some((amount, _, tax)) => {
            format!(
                "{} {currency}, of which {} tax",
                decimal(amount),
                decimal(tax)
            )
        }
        None => "none".to_owned(),
    };
    output::text(&format!(
        "\nprice     {price}\ndistance  {distance} m ({distance_source})\nduration  {duration} s\n"
    ))
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
