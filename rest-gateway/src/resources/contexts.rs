//! `/api/contexts` and `/api/docs.jsonld`: what the API says of itself to programs.

use std::sync::Arc;

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
