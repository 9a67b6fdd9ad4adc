//! Stores: the shops that order deliveries.

use iso_currency::Currency;
use jiff::{Timestamp, tz::TimeZone};

use crate::{address::Address, brand::Brand, coverage::ServiceArea, id::StoreId};

/// A shop. Its time zone applies to the times of its deliveries, prices and time slots.
#[derive(Clone, Debug)]
pub struct Store {
    pub id: StoreId,
    pub display_name: String,
    pub time_zone: TimeZone,
    pub currency: Currency,
    pub country: Country,
    pub default_address: Option<Address>,
    /// Where it delivers; unlimited if absent.
    pub service_area: Option<ServiceArea>,
    /// Whether a delivery must have a price.
    pub refuses_unpriced: bool,
    /// Whether its deliveries have tracking pages.
    pub has_tracking: bool,
    /// E.164; shown on these pages.
    pub telephone: Option<String>,
    pub brand: Brand,
    pub created_at: Timestamp,
    /// Since when its clients get no tokens, and none of their calls is executed.
    pub disabled_at: Option<Timestamp>,
}

impl Store {
    /// The time zone's IANA name.
    pub fn time_zone_name(&self) -> &str {
        self.time_zone.iana_name().unwrap_or("UTC")
    }
}

/// An ISO 3166-1 alpha-2 code, upper case.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Country(String);

impl Country {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Country {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let code = text.to_ascii_uppercase();
        if code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
            Ok(Self(code))
        } else {
            let expected = "a country; give two letters (ISO 3166-1), such as FR";
            Err(is_not(text, expected))
        }
    }
}

/// Parses an IANA time zone name.
pub fn parse_time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name)
        .ok()
        .filter(|zone| zone.iana_name().is_some())
        .ok_or_else(|| is_not(name, "a time zone; give an IANA name, such as Europe/Paris"))
}

/// Parses an ISO 4217 code, in any case.
pub fn parse_currency(code: &str) -> Result<Currency, String> {
    Currency::from_code(&code.to_ascii_uppercase()).ok_or_else(|| {
        is_not(
            code,
            "a currency; give three letters (ISO 4217), such as EUR",
        )
    })
}

fn is_not(text: &str, expected: &str) -> String {
    let text: String = text.chars().take(64).collect();
    format!("{text:?} is not {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_has_two_letters() {
        assert_eq!("fr".parse(), Ok(Country("FR".to_owned())));
        for wrong in ["FRA", "F1", "", "é"] {
            let expected =
                format!("{wrong:?} is not a country; give two letters (ISO 3166-1), such as FR");
            assert_eq!(wrong.parse::<Country>(), Err(expected));
        }
    }

    #[test]
    fn a_store_shows_the_name_of_its_time_zone() {
        let store = Store {
            id: StoreId::new(),
            display_name: String::new(),
            time_zone: parse_time_zone("Europe/Paris").unwrap(),
            currency: Currency::EUR,
            country: Country("FR".to_owned()),
            default_address: None,
            service_area: None,
            refuses_unpriced: false,
            has_tracking: true,
            telephone: None,
            brand: Brand::default(),
            created_at: Timestamp::UNIX_EPOCH,
            disabled_at: None,
        };

        assert_eq!(store.time_zone_name(), "Europe/Paris");
    }
}
