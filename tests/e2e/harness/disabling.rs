//! An operator who disables an API client.

use delivery::Credentials;
use proto::{DisableApiClientRequest, ListApiClientsRequest, api_clients_client::ApiClientsClient};
use tonic::Request;

use super::{Platform, operator};

impl Platform {
    /// Disables an API client for good.
    pub(crate) async fn disable(&self, credentials: &Credentials) {
        let (channel, token) = operator::connect(self, &["admin"]).await;
        let mut clients = ApiClientsClient::new(channel);
        let listed = clients
            .list_api_clients(operator::bearing(
                &token,
                Request::new(ListApiClientsRequest::default()),
            ))
            .await
            .unwrap()
            .into_inner();
        let client = listed
            .api_clients
            .into_iter()
            .find(|client| client.api_key == credentials.api_key)
            .unwrap();
        let request = DisableApiClientRequest { name: client.name };
        clients
            .disable_api_client(operator::bearing(&token, Request::new(request)))
            .await
            .unwrap();
    }
}
