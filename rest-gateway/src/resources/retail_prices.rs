//! `/api/retail_prices`, and the price and the distance source in them and in deliveries.

use proto::{
    CalculateRetailPriceRequest, DistanceSource, GetRetailPriceRequest, RuleOutcome,
    iri::{self, Collection},
    retail_prices_client::RetailPricesClient,
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::json_ld::{self, Node, StoreTimeZone},
    request::{HandlerResult, Request},
    resources::deliveries::draft,
};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RetailPrice {
    #[serde(flatten)]
    node: Node,
    #[serde(flatten)]
    price: Price,
    expires_at: String,
    /// Metres.
    distance: u32,
    /// Seconds.
    duration: u32,
    distance_source: Option<&'static str>,
    calculation: Vec<RuleOutcome>,
}

/// `POST /api/retail_prices/calculate`
pub(crate) async fn calculate(mut request: Request) -> HandlerResult {
    let tax_display = read_tax(&mut request);
    let message = CalculateRetailPriceRequest {
        delivery: Some(draft::take(&mut request)),
        violations: request.violations.to_proto(),
        store: String::new(),
    };
    let quote = request
        .call(message, rpc!(RetailPricesClient.calculate_retail_price))
        .await?;

    show(quote, tax_display)
}

/// `GET /api/retail_prices/{token}`
pub(crate) async fn get(mut request: Request) -> HandlerResult {
    let tax_display = read_tax(&mut request);
    request.violations.check()?;

    let name = Collection::RetailPrices.name(&request.parameter);
    let message = GetRetailPriceRequest { name };
    let quote = request
        .call(message, rpc!(RetailPricesClient.get_retail_price))
        .await?;

    show(quote, tax_display)
}

fn show(quote: proto::RetailPrice, tax_display: TaxDisplay) -> HandlerResult {
    let price = RetailPrice::new(quote, tax_display)?;
    json_ld::ok("/api/contexts/RetailPrice", &price)
}

/// Reads the query parameter `tax`.
fn read_tax(request: &mut Request) -> TaxDisplay {
    let values = request.query("tax");
    match &values.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["included"] => TaxDisplay::Included,
        ["excluded"] => TaxDisplay::Excluded,
        others => {
            let others = others.join("`, `");
            let wrong = format!("must be `included` or `excluded`, once, not `{others}`");
            request.violations.add("tax", "UNKNOWN_VALUE", wrong);
            TaxDisplay::Included
        }
    }
}

impl RetailPrice {
    fn new(quote: proto::RetailPrice, tax_display: TaxDisplay) -> Result<Self, Error> {
        let distance_source = distance_source(quote.distance_source());
        let price = quote
            .price
            .ok_or_else(|| Error::incomplete("a retail price's price"))?;
        Ok(Self {
            node: Node::with_iri("RetailPrice", iri::of(&quote.name)),
            price: Price::new(price, tax_display)?,
            expires_at: StoreTimeZone::named(&quote.time_zone).write(quote.expire_time.as_ref())?,
            distance: quote.distance_meters,
            duration: quote.duration_seconds,
            distance_source,
            calculation: quote.calculation,
        })
    }
}

/// A price, in minor units of its currency.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Price {
    amount: i64,
    currency: String,
    tax: Tax,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Tax {
    amount: i64,
    included: bool,
}

/// Whether `amount` includes the tax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaxDisplay {
    Included,
    Excluded,
}

impl Price {
    pub(super) fn new(price: proto::Price, tax_display: TaxDisplay) -> Result<Self, Error> {
        let amount = match tax_display {
            TaxDisplay::Included => price
                .net_amount
                .checked_add(price.tax_amount)
                .ok_or_else(|| Error::internal("the sum of the price and its tax overflows"))?,
            TaxDisplay::Excluded => price.net_amount,
        };
        Ok(Self {
            amount,
            currency: price.currency_code,
            tax: Tax {
                amount: price.tax_amount,
                included: tax_display == TaxDisplay::Included,
            },
        })
    }
}

/// The name of a distance source; none for a value unknown to this gateway.
pub(super) fn distance_source(source: DistanceSource) -> Option<&'static str> {
    match source {
        DistanceSource::StraightLine => Some("straight_line"),
        DistanceSource::Osrm => Some("osrm"),
        DistanceSource::Unspecified => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(net_amount: i64, tax_amount: i64) -> proto::Price {
        proto::Price {
            net_amount,
            tax_amount,
            currency_code: "EUR".to_owned(),
        }
    }

    #[test]
    fn the_amount_includes_the_tax_unless_it_is_excluded() {
        let amount = |amount, included| Price {
            amount,
            currency: "EUR".to_owned(),
            tax: Tax {
                amount: 83,
                included,
            },
        };

        let included = Price::new(price(416, 83), TaxDisplay::Included).unwrap();
        let excluded = Price::new(price(416, 83), TaxDisplay::Excluded).unwrap();

        assert_eq!(included, amount(499, true));
        assert_eq!(excluded, amount(416, false));
    }

    #[test]
    fn a_sum_that_overflows_is_an_error() {
        assert!(Price::new(price(i64::MAX, 1), TaxDisplay::Included).is_err());
    }
}
