//! `/api/settings`: the platform's settings.

use serde::Serialize;

use crate::{
    gateway::HandlerResult,
    representation::json_ld::{self, Node},
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
    let platform = &request.gateway.platform;
    let settings = Settings {
        node: Node::with_iri("Settings", "/api/settings".to_owned()),
        brand_name: &request.gateway.platform_name,
        country: &platform.country,
        locale: &platform.locale,
        timezone: &platform.timezone,
        currency_code: platform.currency.code(),
        latlng: &platform.map_center,
    };
    json_ld::ok("/api/contexts/Settings", &settings)
}
