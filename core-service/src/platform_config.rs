//! The settings that are the defaults of stores and clients.

use clap::Args;
use domain::store::{Country, parse_time_zone};
use jiff::tz::TimeZone;

/// The defaults of stores and clients.
#[derive(Args, Clone, Debug)]
pub struct PlatformConfig {
    /// Default time zone of stores (IANA). Example: `Europe/Brussels`.
    #[arg(long, env = "DELIVERY_TIMEZONE", value_name = "ZONE", default_value = "Europe/Paris", value_parser = parse_time_zone)]
    pub timezone: TimeZone,

    /// Language of labels for clients without a supported preference (BCP 47). Example: `fr-BE`.
    #[arg(long, env = "DELIVERY_LOCALE", default_value = "en", value_parser = locale)]
    pub locale: String,

    /// Default country of stores, in whose national format telephone numbers are read (ISO 3166-1
    /// alpha-2). Example: `BE`.
    #[arg(
        long,
        env = "DELIVERY_COUNTRY",
        value_name = "CODE",
        default_value = "FR"
    )]
    pub country: Country,
}

fn locale(tag: &str) -> Result<String, String> {
    tag.parse::<icu_locale_core::Locale>()
        .map(|_| tag.to_owned())
        .map_err(|_| format!("{tag:?} is not a language; give a BCP 47 tag, such as en or fr-BE"))
}
