//! `/api/retail_prices`

use std::sync::Arc;

use proto::{
    CalculateRetailPriceRequest, DistanceSource, GetRetailPriceRequest, Price,
    iri::{self, Collection},
    retail_prices_client::RetailPricesClient,
};
use serde::Serialize;

use crate::{
    core::Repeat,
    error::Error,
    json_ld::{self, Zone},
    report::Report,
    request::Request,
    resources::delivery_draft,
    routes::{Answer, Gateway},
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RetailPrice {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: String,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    #[serde(flatten)]
    price: ShownPrice,
    expires_at: String,
    /// Metres.
    distance: u32,
    /// Seconds.
    duration: u32,
    /// Who says how far it is.
    distance_source: Option<&'static str>,
    calculation: Vec<RuleOutcome>,
}

/// A price, in the currency's minor units.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ShownPrice {
    amount: i64,
    currency: String,
    tax: Tax,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Tax {
    amount: i64,
    included: bool,
}

/// Whether a price is shown with its tax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaxShown {
    Included,
    Excluded,
}

/// How a rule of a price list fared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RuleOutcome {
    pub(crate) rule: String,
    pub(crate) matched: bool,
    pub(crate) reason: String,
    /// What it added, tax included, in minor units.
    pub(crate) amount: i64,
}

/// `POST /api/retail_prices/calculate`
pub(crate) async fn calculate(gateway: Arc<Gateway>, request: Request) -> Answer {
    let call = request.call()?;
    let mut report = Report::default();
    let tax_shown = read_tax(&request, &mut report);
    let draft = delivery_draft::read(&request.json()?, &mut report);

    let message = CalculateRetailPriceRequest {
        delivery: Some(draft),
        violations: report.violations(),
    };
    let price = gateway
        .core
        .call(call, Repeat::Harmless, message, |core, message| async {
            RetailPricesClient::new(core)
                .calculate_retail_price(message)
                .await
        })
        .await
        .map_err(|error| report.explain(error))?;

    json_ld::ok(&RetailPrice::new(price, tax_shown)?)
}

/// `GET /api/retail_prices/{token}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> Answer {
    let mut report = Report::default();
    let tax_shown = read_tax(&request, &mut report);
    if let Some(error) = report.into_error() {
        return Err(error);
    }

    let message = GetRetailPriceRequest {
        name: Collection::RetailPrices.name(&request.parameter),
    };
    let price = gateway
        .core
        .read(&request, message, |core, message| async {
            RetailPricesClient::new(core)
                .get_retail_price(message)
                .await
        })
        .await?;

    json_ld::ok(&RetailPrice::new(price, tax_shown)?)
}

/// Reads the query parameter `tax`.
fn read_tax(request: &Request, report: &mut Report) -> TaxShown {
    let values = request.query("tax");
    let values: Vec<_> = values.iter().map(String::as_str).collect();
    match values[..] {
        [] | ["included"] => TaxShown::Included,
        ["excluded"] => TaxShown::Excluded,
        _ => {
            let wrong = format!(
                "must be `included` or `excluded`, once, not `{}`",
                values.join("`, `")
            );
            report.add("tax", "UNKNOWN_VALUE", wrong);
            TaxShown::Included
        }
    }
}

/// None for one that this gateway does not know.
pub(super) fn shown_distance_source(source: DistanceSource) -> Option<&'static str> {
    match source {
        DistanceSource::StraightLine => Some("straight_line"),
        DistanceSource::Osrm => Some("osrm"),
        DistanceSource::Unspecified => None,
    }
}

impl RetailPrice {
    fn new(price: proto::RetailPrice, tax_shown: TaxShown) -> Result<Self, Error> {
        let distance_source = shown_distance_source(price.distance_source());
        let amount = price
            .price
            .ok_or_else(|| Error::incomplete("a retail price's price"))?;
        Ok(Self {
            context: "/api/contexts/RetailPrice",
            iri: iri::of(&price.name),
            ld_type: "RetailPrice",
            price: ShownPrice::new(amount, tax_shown)?,
            expires_at: Zone::named(&price.time_zone).write(price.expire_time.as_ref())?,
            distance: price.distance_meters,
            duration: price.duration_seconds,
            distance_source,
            calculation: price
                .calculation
                .into_iter()
                .map(|outcome| RuleOutcome {
                    rule: outcome.rule,
                    matched: outcome.matched,
                    reason: outcome.reason,
                    amount: outcome.amount,
                })
                .collect(),
        })
    }
}

impl ShownPrice {
    pub(super) fn new(price: Price, tax_shown: TaxShown) -> Result<Self, Error> {
        let amount = match tax_shown {
            TaxShown::Included => price
                .net_amount
                .checked_add(price.tax_amount)
                .ok_or_else(|| Error::Internal("a price's parts have no sum".into()))?,
            TaxShown::Excluded => price.net_amount,
        };
        Ok(Self {
            amount,
            currency: price.currency_code,
            tax: Tax {
                amount: price.tax_amount,
                included: tax_shown == TaxShown::Included,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(net_amount: i64, tax_amount: i64) -> Price {
        Price {
            net_amount,
            tax_amount,
            currency_code: "EUR".to_owned(),
        }
    }

    #[test]
    fn tax_is_part_of_the_amount_unless_it_was_asked_to_be_left_out() {
        let amount = |amount, included| ShownPrice {
            amount,
            currency: "EUR".to_owned(),
            tax: Tax {
                amount: 83,
                included,
            },
        };

        let included = ShownPrice::new(price(416, 83), TaxShown::Included).unwrap();
        let excluded = ShownPrice::new(price(416, 83), TaxShown::Excluded).unwrap();

        assert_eq!(included, amount(499, true));
        assert_eq!(excluded, amount(416, false));
    }

    #[test]
    fn a_sum_that_overflows_is_an_error() {
        assert!(ShownPrice::new(price(i64::MAX, 1), TaxShown::Included).is_err());
    }
}
