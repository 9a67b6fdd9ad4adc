//! `/api/me`: the calling client.

use std::sync::Arc;

use proto::{
    GetCurrentApiClientRequest,
    api_clients_client::ApiClientsClient,
    iri::{self, Collection},
};
use serde::Serialize;

use crate::{
    gateway::{Gateway, HandlerResult},
    json_ld,
    request::Request,
};

#[derive(Debug, Serialize)]
struct ApiApp {
    #[serde(rename = "@context")]
    context: &'static str,
    #[serde(rename = "@id")]
    iri: String,
    #[serde(rename = "@type")]
    ld_type: &'static str,
    id: String,
    name: String,
    /// None for a client of the platform, such as the courier app.
    store: Option<String>,
    /// Always null; existing clients read it.
    shop: Option<String>,
}

/// `GET /api/me`
pub(crate) async fn get(gateway: Arc<Gateway>, request: Request) -> HandlerResult {
    let message = GetCurrentApiClientRequest {};
    let client = gateway
        .core
        .read(request.call_options()?, message, |core, message| async {
            ApiClientsClient::new(core)
                .get_current_api_client(message)
                .await
        })
        .await?;

    json_ld::ok(&ApiApp::from(client))
}

impl From<proto::ApiClient> for ApiApp {
    fn from(client: proto::ApiClient) -> Self {
        Self {
            context: "/api/contexts/ApiApp",
            iri: iri::of(&client.name),
            ld_type: "http://schema.org/SoftwareApplication",
            id: Collection::ApiClients
                .last_segment(&client.name)
                .unwrap_or_default()
                .to_owned(),
            name: client.display_name,
            store: (!client.store.is_empty()).then(|| iri::of(&client.store)),
            shop: None,
        }
    }
}
