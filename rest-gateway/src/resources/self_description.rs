//! The entrypoint and the machine-readable descriptions of the API: `/api`, `/api/contexts`,
//! `/api/docs.jsonld` and `/api/docs.json`.

use std::sync::Arc;

use http::{HeaderValue, Response, header::CONTENT_TYPE};
use proto::iri::{self, Collection};
use serde::Serialize;

use crate::{
    api_description,
    error::Error,
    gateway::{Gateway, HandlerResult},
    json_ld,
    request::Request,
};

/// The collections that can be listed.
#[derive(Debug, Serialize)]
struct Entrypoint {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: &'static str,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    delivery: String,
    event: String,
    webhook: String,
}

/// `GET /api`
pub(crate) async fn get_entrypoint(_: Arc<Gateway>, _: Request) -> HandlerResult {
    let iri_of = |collection: Collection| iri::of(collection.segment());
    json_ld::ok(&Entrypoint {
        context: "/api/contexts/Entrypoint",
        iri: "/api",
        ld_type: "Entrypoint",
        delivery: iri_of(Collection::Deliveries),
        event: iri_of(Collection::Events),
        webhook: iri_of(Collection::Webhooks),
    })
}

/// `GET /api/contexts/{name}`
pub(crate) async fn get_context(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let context = api_description::context(&request.parameter, &gateway.public_url)
        .ok_or_else(Error::no_such_path)?;
    json_ld::ok(&context)
}

/// `GET /api/docs.jsonld`
pub(crate) async fn get_hydra(gateway: Arc<Gateway>, _: Request) -> HandlerResult {
    json_ld::ok(&api_description::api_documentation(
        &gateway.platform_name,
        &gateway.public_url,
    ))
}

/// `GET /api/docs.json`
pub(crate) async fn get_openapi(gateway: Arc<Gateway>, _: Request) -> HandlerResult {
    let mut response = Response::new(gateway.openapi.clone());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
