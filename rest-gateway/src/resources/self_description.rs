//! The entrypoint, the settings of the platform and the machine-readable descriptions of the API: `/api`,
//! `/api/settings`, `/api/contexts`, `/api/docs.jsonld` and `/api/docs.json`.

use bytes::Bytes;
use http::Response;
use proto::iri::{self, Collection};
use serde::Serialize;

use crate::{
    api_description,
    error::Error,
    representation::json_ld::{self, Node},
    request::{self, HandlerResult, Request},
};

/// The collections that can be listed.
#[derive(Debug, Serialize)]
struct Entrypoint {
    #[serde(flatten)]
    node: Node,
    delivery: String,
    event: String,
    webhook: String,
}

/// The settings of the platform; existing clients read these member names.
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

/// `GET /api`
pub(crate) fn get_entrypoint() -> HandlerResult {
    let iri_of = |collection: Collection| iri::of(collection.segment());
    let entrypoint = Entrypoint {
        node: Node::with_iri("Entrypoint", "/api".to_owned()),
        delivery: iri_of(Collection::Deliveries),
        event: iri_of(Collection::Events),
        webhook: iri_of(Collection::Webhooks),
    };
    json_ld::ok("/api/contexts/Entrypoint", &entrypoint)
}

/// `GET /api/settings`
pub(crate) fn get_settings(request: &Request) -> HandlerResult {
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

/// `GET /api/contexts/{name}`
pub(crate) fn get_context(request: &Request) -> HandlerResult {
    let context = api_description::context(&request.parameter, &request.gateway.public_url)
        .ok_or_else(Error::no_such_path)?;
    json_ld::document(&context)
}

/// `GET /api/docs.jsonld`
pub(crate) fn get_hydra(request: &Request) -> HandlerResult {
    json_ld::document(&api_description::api_documentation(
        &request.gateway.platform_name,
        &request.gateway.public_url,
    ))
}

/// `GET /api/docs.json`
pub(crate) fn get_openapi(request: &Request) -> Response<Bytes> {
    let state = &request.gateway;
    let document = state.openapi.get_or_init(|| {
        api_description::openapi(&state.platform_name, &state.public_url)
            .to_string()
            .into()
    });
    request::response("application/json", document.clone())
}
