//! Money: integer minor units (ISO 4217) and a currency, never floating-point numbers.

use iso_currency::Currency;

/// A price that a customer pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Excluding tax, in minor units.
    pub net: i64,
    /// The tax, in minor units.
    pub tax: i64,
    pub currency: Currency,
}

impl Price {
    /// Splits an amount that includes tax. The tax is `gross − gross / (1 + rate)`, rounded once,
    /// half away from zero; the net amount is the rest.
    pub fn from_gross(gross: i64, rate: TaxRate, currency: Currency) -> Self {
        let (gross_wide, rate) = (i128::from(gross), i128::from(rate.0));
        let (dividend, divisor) = (gross_wide * rate, 10_000 + rate);
        let rounded = (2 * dividend.abs() + divisor) / (2 * divisor) * dividend.signum();
        // The tax is at most `gross` in absolute value, so it fits.
        let tax = i64::try_from(rounded).unwrap_or(gross);
        Self {
            net: gross - tax,
            tax,
            currency,
        }
    }

    /// The amount including tax, in minor units.
    pub fn gross(self) -> i64 {
        self.net + self.tax
    }
}

/// A tax rate in basis points: 2000 is 20 %. From 0 to 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaxRate(u16);

impl TaxRate {
    pub fn from_basis_points(basis_points: i64) -> Option<Self> {
        u16::try_from(basis_points)
            .ok()
            .filter(|rate| *rate <= 10_000)
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tax(gross: i64, basis_points: i64) -> i64 {
        let rate = TaxRate::from_basis_points(basis_points).unwrap();
        Price::from_gross(gross, rate, Currency::EUR).tax
    }

    #[test]
    fn tax_is_rounded_once_from_the_total() {
        for (gross, expected) in [
            (499, 83),
            (500, 83),
            (699, 117),
            (1299, 217),
            (1500, 250),
            (1999, 333),
            (200, 33),
            (0, 0),
            (-499, -83),
        ] {
            assert_eq!(tax(gross, 2000), expected, "{gross}");
        }
        // Half to even would give the same for 3, but 0 for 1 and 2 for 5.
        for (gross, expected) in [(1, 1), (-1, -1), (3, 2), (-3, -2), (5, 3), (-5, -3)] {
            assert_eq!(tax(gross, 10_000), expected, "half of {gross}");
        }
        assert_eq!(tax(1999, 0), 0);
    }

    #[test]
    fn a_tax_rate_is_from_0_to_100_percent() {
        for valid in [0, 1, 2000, 10_000] {
            assert_eq!(
                TaxRate::from_basis_points(valid.into()),
                Some(TaxRate(valid))
            );
        }
        assert_eq!(TaxRate::from_basis_points(-1), None);
        assert_eq!(TaxRate::from_basis_points(10_001), None);
    }

    proptest! {
        #[test]
        fn net_and_tax_add_up_to_the_gross_amount(gross in any::<i64>(), rate in 0..=10_000_i64) {
            let rate = TaxRate::from_basis_points(rate).unwrap();
            let price = Price::from_gross(gross, rate, Currency::EUR);

            prop_assert_eq!(i128::from(price.net) + i128::from(price.tax), i128::from(gross));
            prop_assert_eq!(price.gross(), gross);
            prop_assert!(price.tax.unsigned_abs() <= gross.unsigned_abs().div_ceil(2));
            prop_assert!(gross == 0 || price.tax == 0 || (price.tax > 0) == (gross > 0));
        }
    }
}
