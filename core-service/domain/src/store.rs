//! Stores: the shops that order deliveries.

use iso_currency::Currency;
use jiff::{Timestamp, tz::TimeZone};

use crate::{address::Address, id::StoreId, service_area::ServiceArea};

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
    pub created_at: Timestamp,
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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a country; give two letters (ISO 3166-1), such as FR")]
pub struct UnknownCountry(String);

impl Country {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Country {
    type Err = UnknownCountry;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let code = text.to_ascii_uppercase();
        if code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
            Ok(Self(code))
        } else {
            Err(UnknownCountry(text.chars().take(64).collect()))
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time zone; give an IANA name, such as Europe/Paris")]
pub struct UnknownTimeZone(String);

/// Parses an IANA time zone name.
pub fn parse_time_zone(name: &str) -> Result<TimeZone, UnknownTimeZone> {
    let unknown = || UnknownTimeZone(name.chars().take(64).collect());
    TimeZone::get(name)
        .ok()
        .filter(|zone| zone.iana_name().is_some())
        .ok_or_else(unknown)
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a currency; give three letters (ISO 4217), such as EUR")]
pub struct UnknownCurrency(String);

/// Parses an ISO 4217 code, in any case.
pub fn parse_currency(code: &str) -> Result<Currency, UnknownCurrency> {
    Currency::from_code(&code.to_ascii_uppercase())
        .ok_or_else(|| UnknownCurrency(code.chars().take(64).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_country_has_two_letters() {
        assert_eq!("fr".parse(), Ok(Country("FR".to_owned())));
        for wrong in ["FRA", "F1", "", "é"] {
            let expected = Err(UnknownCountry(wrong.to_owned()));
            assert_eq!(wrong.parse::<Country>(), expected);
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
            created_at: Timestamp::UNIX_EPOCH,
        };

        assert_eq!(store.time_zone_name(), "Europe/Paris");
    }
}
