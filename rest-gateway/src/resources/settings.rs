//! `/api/settings`: the platform's settings.

use std::sync::Arc;

use serde::Serialize;

use crate::{
    gateway::{Gateway, HandlerResult},
    json_ld,
    platform::PlatformConfig,
    request::Request,
};

/// The response; existing clients read these member names.
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
pub(crate) async fn get(gateway: Arc<Gateway>, _: Request) -> HandlerResult {
    let PlatformConfig {
        timezone,
        locale,
        country,
        currency,
        map_center,
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
        latlng: map_center.to_string(),
    })
}
