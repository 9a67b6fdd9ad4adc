//! `/api/settings`: what the platform is to all its shops.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    json_ld,
    platform::PlatformConfig,
    request::Request,
    routes::{Answer, Gateway},
};

/// The names are those that existing clients read.
#[derive(Debug, Serialize)]
struct Settings<'a> {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    brand_name: &'a str,
    country: &'a str,
    locale: &'a str,
    timezone: &'a str,
    currency_code: &'static str,
    latlng: String,
}

/// `GET /api/settings`
pub(crate) async fn get(gateway: Arc<Gateway>, _: Request) -> Answer {
    let PlatformConfig {
        timezone,
        locale,
        country,
        currency,
        latlng,
    } = &gateway.platform;
    json_ld::ok(&Settings {
        context: "/api/contexts/Settings",
        iri: "/api/settings",
        ld_type: "Settings",
        brand_name: &gateway.platform_name,
        country,
        locale,
        timezone,
        currency_code: currency.code(),
        latlng: latlng.to_string(),
    })
}
