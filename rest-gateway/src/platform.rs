//! Settings of the platform, served at `/api/settings`.

use clap::Args;
use iso_currency::Currency;
use jiff::tz::TimeZone;

/// Settings that are the same for all stores.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct PlatformConfig {
    /// The platform's time zone (IANA). Example: `Europe/Brussels`
    #[arg(long, env = "DELIVERY_TIMEZONE", value_name = "ZONE")]
    #[arg(value_parser = time_zone, default_value = "Europe/Paris")]
    pub timezone: String,

    /// The platform's language (BCP 47). Example: `fr-BE`
    #[arg(long, env = "DELIVERY_LOCALE", value_parser = locale)]
    #[arg(default_value = "en")]
    pub locale: String,

    /// The platform's country (ISO 3166-1 alpha-2). Example: `BE`
    #[arg(long, env = "DELIVERY_COUNTRY", value_name = "CODE")]
    #[arg(value_parser = country, default_value = "FR")]
    pub country: String,

    /// The platform's currency (ISO 4217). Example: `CHF`
    #[arg(long, env = "DELIVERY_CURRENCY", value_name = "CODE")]
    #[arg(default_value = "EUR")]
    pub currency: Currency,

    /// The initial center of the platform's maps. Example: `50.8503,4.3517`
    #[arg(long, env = "DELIVERY_MAP_CENTER", value_name = "LAT,LNG")]
    #[arg(allow_hyphen_values = true, value_parser = map_center)]
    #[arg(default_value = "48.8566,2.3522")]
    pub map_center: String,
}

fn time_zone(name: &str) -> Result<String, String> {
    TimeZone::get(name)
        .ok()
        .and_then(|zone| zone.iana_name().map(str::to_owned))
        .ok_or_else(|| {
            format!("{name:?} is not a time zone; give an IANA name, such as Europe/Paris")
        })
}

fn locale(tag: &str) -> Result<String, String> {
    tag.parse::<icu_locale_core::Locale>()
        .map(|_| tag.to_owned())
        .map_err(|_| format!("{tag:?} is not a language; give a BCP 47 tag, such as en or fr-BE"))
}

fn country(code: &str) -> Result<String, String> {
    if code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        Ok(code.to_ascii_uppercase())
    } else {
        Err(format!(
            "{code:?} is not a country; give two letters (ISO 3166-1), such as FR"
        ))
    }
}

/// Latitude and longitude (WGS 84) in degrees.
pub fn map_center(text: &str) -> Result<String, String> {
    let number = |text: &str, limit: f64| {
        let number: f64 = text.trim().parse().ok()?;
        (-limit..=limit).contains(&number).then_some(number)
    };
    text.split_once(',')
        .and_then(|(latitude, longitude)| {
            let (latitude, longitude) = (number(latitude, 90.0)?, number(longitude, 180.0)?);
            Some(format!("{latitude},{longitude}"))
        })
        .ok_or_else(|| {
            format!(
                "{text:?} is not a point; give latitude (-90 to 90), comma, longitude (-180 to 180), such as 48.8566,2.3522"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_a_valid_latitude_and_longitude() {
        for (text, written) in [
            ("48.8566,2.3522", "48.8566,2.3522"),
            (" -90 , 180 ", "-90,180"),
            ("0,-0.5", "0,-0.5"),
        ] {
            assert_eq!(map_center(text), Ok(written.to_owned()));
        }
        for wrong in ["", "48", "90.1,0", "0,180.1", "NaN,0", "1,2,3", "a,b"] {
            let error = map_center(wrong).unwrap_err();
            assert!(error.starts_with(&format!("{wrong:?} is not a point")));
        }
    }

    #[test]
    fn an_unknown_time_zone_language_or_country_is_rejected() {
        assert_eq!(time_zone("Europe/Paris"), Ok("Europe/Paris".to_owned()));
        assert!(time_zone("Mars/Olympus").is_err());
        assert_eq!(locale("fr-BE"), Ok("fr-BE".to_owned()));
        assert!(locale("français").is_err());
        assert_eq!(country("fr"), Ok("FR".to_owned()));
        assert!(country("FRA").is_err());
    }
}
