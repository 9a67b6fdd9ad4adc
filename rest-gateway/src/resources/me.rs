//! `/api/me` and `/api/api_apps`: the calling client.

use std::sync::Arc;

use proto::{
    GetCurrentApiClientRequest,
    api_clients_client::ApiClientsClient,
    iri::{self, Collection},
};
use serde::Serialize;

use crate::{
    error::Error,
    gateway::{Gateway, HandlerResult},
    json_ld::{self, Node},
    request::Request,
};

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
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    json_ld::ok(&ApiApp::from(caller(&gateway, &request).await?))
}

/// `GET /api/api_apps/{id}`: a client can read itself only.
pub(crate) async fn get_by_id(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let client = caller(&gateway, &request).await?;
    if client.name != Collection::ApiClients.name(&request.parameter) {
        return Err(Error::not_found("there is no such API client"));
    }
    json_ld::ok(&ApiApp::from(client))
}

async fn caller(gateway: &Gateway, request: &Request) -> Result<proto::ApiClient, Error> {
    let message = GetCurrentApiClientRequest {};
    gateway
        .core
        .read(request.call_options()?, message, |core, message| async {
            ApiClientsClient::new(core)
                .get_current_api_client(message)
                .await
        })
        .await
}

impl From<proto::ApiClient> for ApiApp {
    fn from(client: proto::ApiClient) -> Self {
        Self {
            node: Node::root(
                "/api/contexts/ApiApp",
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
