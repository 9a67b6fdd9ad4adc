//! `/api/contexts`, `/api/docs.jsonld` and `/api/docs.json`: what the API says of itself to
//! programs.

use std::sync::Arc;

use http::{HeaderValue, Response, header::CONTENT_TYPE};

use crate::{
    error::Error,
    json_ld,
    request::Request,
    routes::{Answer, Gateway},
    vocabulary,
};

/// `GET /api/contexts/{name}`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> Answer {
    let context = vocabulary::context(&request.parameter, &gateway.public_url)
        .ok_or_else(Error::no_such_path)?;
    json_ld::ok(&context)
}

/// `GET /api/docs.jsonld`
pub(crate) async fn get_documentation(gateway: Arc<Gateway>, _: Request) -> Answer {
    json_ld::ok(&vocabulary::api_documentation(
        &gateway.platform_name,
        &gateway.public_url,
    ))
}

/// `GET /api/docs.json`
pub(crate) async fn get_openapi(gateway: Arc<Gateway>, _: Request) -> Answer {
    let mut response = Response::new(gateway.openapi.clone());
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
