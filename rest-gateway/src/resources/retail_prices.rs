//! `/api/retail_prices`

use proto::{
    CalculateRetailPriceRequest, GetRetailPriceRequest, RuleOutcome,
    iri::{self, Collection},
    retail_prices_client::RetailPricesClient,
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::json_ld::{self, Node, StoreTimeZone},
    request::{HandlerResult, Request},
    resources::deliveries::{Price, TaxDisplay, distance_source, draft},
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
