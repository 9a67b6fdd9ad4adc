//! `/api/me` and `/api/api_apps`: the calling client.

use proto::{
    GetCurrentApiClientRequest,
    api_clients_client::ApiClientsClient,
    iri::{self, Collection},
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::{
        error_codes as codes,
        json_ld::{self, Node},
    },
    request::{HandlerResult, Request},
};

const CONTEXT: &str = "/api/contexts/ApiApp";

#[derive(Debug, Serialize)]
struct ApiApp {
    #[serde(flatten)]
    node: Node,
    name: String,
    /// None for a client of the platform, such as the courier app.
    store: Option<String>,
    /// Always null; existing clients read it.
    shop: Option<String>,
}

/// `GET /api/me`
pub(crate) async fn get(request: Request) -> HandlerResult {
    json_ld::ok(CONTEXT, &ApiApp::from(caller(&request).await?))
}

/// `GET /api/api_apps/{id}`: a client can read itself only.
pub(crate) async fn get_by_id(request: Request) -> HandlerResult {
    let client = caller(&request).await?;
    if client.name != Collection::ApiClients.name(&request.parameter) {
        return Err(Error::new(&codes::NOT_FOUND, "there is no such API client"));
    }
    json_ld::ok(CONTEXT, &ApiApp::from(client))
}

async fn caller(request: &Request) -> Result<proto::ApiClient, Error> {
    let message = GetCurrentApiClientRequest {};
    request
        .call(message, rpc!(ApiClientsClient.get_current_api_client))
        .await
}

impl From<proto::ApiClient> for ApiApp {
    fn from(client: proto::ApiClient) -> Self {
        Self {
            node: Node::new(
                "http://schema.org/SoftwareApplication",
                Collection::ApiClients,
                &client.name,
            ),
            name: client.display_name,
            store: (!client.store.is_empty()).then(|| iri::of(&client.store)),
            shop: None,
        }
    }
}
