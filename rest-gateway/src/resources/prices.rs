//! Prices and distance sources, as deliveries and retail prices show them.

use proto::DistanceSource;
use serde::Serialize;

use crate::error::Error;

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
