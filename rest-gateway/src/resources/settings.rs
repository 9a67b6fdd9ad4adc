//! `/api/settings`: the platform's settings.

use serde::Serialize;

use crate::{
    gateway::HandlerResult,
    json_ld::{self, Node},
    platform::PlatformConfig,
    request::Request,
};

/// The response; existing clients read these member names.
#[derive(Debug, Serialize)]
struct Settings<'a> {
    #[serde(flatten)]
    node: Node,
    brand_name: &'a str,
    country: &'a str,
    locale: &'a str,
    timezone: &'a str,
    currency_code: &'static str,
    latlng: &'a str,
}

/// `GET /api/settings`
pub(crate) fn get(request: &Request) -> HandlerResult {
    let PlatformConfig {
        timezone,
        locale,
        country,
        currency,
        map_center,
    } = &request.gateway.platform;
    let settings = Settings {
        node: Node::with_iri("Settings", "/api/settings".to_owned()),
        brand_name: &request.gateway.platform_name,
        country,
        locale,
        timezone,
        currency_code: currency.code(),
        latlng: map_center,
    };
    json_ld::ok("/api/contexts/Settings", &settings)
}
