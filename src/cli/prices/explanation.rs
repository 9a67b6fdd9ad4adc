//! The printed form of a price's explanation.

use proto::{Price, PriceExplanation, RuleOutcome};
use rest_gateway::Currency;
use serde_json::json;

use crate::cli::output::{View, enum_name};

/// The rules in their order, and the price. Distances are in metres, durations in seconds.
pub(super) fn view(explained: &PriceExplanation) -> View {
    let currency = &*explained.currency_code;
    let rule = |rule: &RuleOutcome| {
        View::default()
            .field("rule", &*rule.rule)
            .json("matched", rule.matched)
            .text("matched", if rule.matched { "yes" } else { "no" })
            .json("amount", rule.amount)
            .text("amount", decimal(rule.amount, currency))
            .field("reason", &*rule.reason)
    };
    let rules = explained.calculation.iter().map(rule).collect();
    let amount = |price: &Price| price.net_amount.saturating_add(price.tax_amount);
    let price = explained.price.as_ref();
    let price_json = price.map(|price| {
        json!({ "amount": amount(price), "net": price.net_amount, "tax": price.tax_amount })
    });
    let price_text = price.map(|price| {
        let tax = decimal(price.tax_amount, currency);
        let amount = decimal(amount(price), currency);
        format!("{amount} {currency}, of which {tax} tax")
    });
    let (distance, duration) = (explained.distance_meters, explained.duration_seconds);
    let source = enum_name(
        explained.distance_source().as_str_name(),
        "DISTANCE_SOURCE_",
    );
    View::default()
        .list("calculation", rules)
        .json("price", price_json)
        .text("price", price_text.as_deref().unwrap_or("none"))
        .json("currency", currency)
        .json("distance", distance)
        .text("distance", format!("{distance} m ({source})"))
        .json("duration", duration)
        .text("duration", format!("{duration} s"))
        .json("distance_source", source)
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
