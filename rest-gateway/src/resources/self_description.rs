//! The entrypoint, the settings of the platform and the machine-readable descriptions of the API: `/api`,
//! `/api/settings`, `/api/contexts`, `/api/docs.jsonld` and `/api/docs.json`.

use std::sync::OnceLock;

use bytes::Bytes;
use http::Response;
use proto::iri::{self, Collection};
use serde::Serialize;

use crate::{
    api_description,
    error::Error,
    representation::{
        json_ld::{self, Node},
        response_body::FixedBody,
    },
    request::{self, HandlerResult, Request},
};

/// The large documents, each made at its first request: that takes milliseconds and megabytes, which an
/// idle gateway does not need.
#[derive(Default)]
pub(crate) struct Documents {
    hydra: OnceLock<FixedBody>,
    openapi: OnceLock<FixedBody>,
    pub(super) page: OnceLock<FixedBody>,
}

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
pub(crate) fn get_hydra(request: &Request) -> Response<Bytes> {
    let gateway = &request.gateway;
    let document = gateway.documents.hydra.get_or_init(|| {
        let description =
            api_description::api_documentation(&gateway.platform_name, &gateway.public_url);
        FixedBody::new(description.to_string())
    });
    document.response()
}

/// `GET /api/docs.json`
pub(crate) fn get_openapi(request: &Request) -> Response<Bytes> {
    let gateway = &request.gateway;
    let document = gateway.documents.openapi.get_or_init(|| {
        let description = api_description::openapi(&gateway.platform_name, &gateway.public_url);
        FixedBody::new(description.to_string())
    });
    request::with_content_type("application/json", document.response())
}
