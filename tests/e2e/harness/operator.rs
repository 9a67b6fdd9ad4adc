//! The platform's operator: makes stores, API clients, time slots and price lists over gRPC.

use delivery::Credentials;
use proto::{
    AddressDraft, ApplyPriceListRequest, ApplyTimeSlotRequest, ApplyZonesRequest,
    CreateApiClientRequest, CreateStoreRequest, IssueTokenRequest,
    api_clients_client::ApiClientsClient, price_lists_client::PriceListsClient,
    stores_client::StoresClient, time_slots_client::TimeSlotsClient, tokens_client::TokensClient,
    zones_client::ZonesClient,
};
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

use super::Platform;

pub(crate) struct Operator {
    channel: Channel,
    token: String,
}

impl Operator {
    pub(crate) async fn authorized(core_url: &str, credentials: &Credentials) -> Self {
        let (channel, token) = connect_to(core_url, credentials, &["admin"]).await;
        Self { channel, token }
    }

    /// Makes a store that has nothing but its name, and gives its name (`stores/<id>`).
    pub(crate) async fn create_store(&self, display_name: &str) -> String {
        self.create_store_as(CreateStoreRequest {
            display_name: display_name.to_owned(),
            ..CreateStoreRequest::default()
        })
        .await
    }

    /// Makes any store and gives its name.
    pub(crate) async fn create_store_as(&self, request: CreateStoreRequest) -> String {
        StoresClient::new(self.channel.clone())
            .create_store(self.request(request))
            .await
            .unwrap()
            .into_inner()
            .name
    }

    /// Makes an API client of a store.
    pub(crate) async fn create_client(&self, store: &str, scopes: &[&str]) -> Credentials {
        self.create_client_at(store, scopes, None).await
    }

    /// Makes an API client with a default pickup address of its own.
    pub(crate) async fn create_client_at(
        &self,
        store: &str,
        scopes: &[&str],
        default_address: Option<AddressDraft>,
    ) -> Credentials {
        let client = ApiClientsClient::new(self.channel.clone())
            .create_api_client(self.request(CreateApiClientRequest {
                store: store.to_owned(),
                display_name: "A program".to_owned(),
                scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
                default_address,
            }))
            .await
            .unwrap()
            .into_inner();
        Credentials {
            api_key: client.api_key,
            api_secret: client.api_secret,
        }
    }

    /// Gives a store its default time slot (TOML).
    pub(crate) async fn apply_time_slot(&self, store: &str, definition: &str) {
        TimeSlotsClient::new(self.channel.clone())
            .apply_time_slot(self.request(ApplyTimeSlotRequest {
                store: store.to_owned(),
                definition: definition.to_owned(),
            }))
            .await
            .unwrap();
    }

    /// Gives a store its price list (TOML).
    pub(crate) async fn apply_price_list(&self, store: &str, definition: &str) {
        PriceListsClient::new(self.channel.clone())
            .apply_price_list(self.request(ApplyPriceListRequest {
                store: store.to_owned(),
                definition: definition.to_owned(),
            }))
            .await
            .unwrap();
    }

    /// Adds zones (GeoJSON) to the platform's.
    pub(crate) async fn apply_zones(&self, definition: &str) {
        ZonesClient::new(self.channel.clone())
            .apply_zones(self.request(ApplyZonesRequest {
                definition: definition.to_owned(),
            }))
            .await
            .unwrap();
    }

    fn request<T>(&self, message: T) -> Request<T> {
        bearing(&self.token, Request::new(message))
    }
}

/// A channel to the platform's core, and a token of the operator's for these scopes.
pub(crate) async fn connect(platform: &Platform, scopes: &[&str]) -> (Channel, String) {
    connect_to(&platform.core_url, &platform.operator_client, scopes).await
}

async fn connect_to(
    core_url: &str,
    credentials: &Credentials,
    scopes: &[&str],
) -> (Channel, String) {
    let channel = Endpoint::from_shared(core_url.to_owned())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let token = TokensClient::new(channel.clone())
        .issue_token(IssueTokenRequest {
            api_key: credentials.api_key.clone(),
            api_secret: credentials.api_secret.clone(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        })
        .await
        .unwrap()
        .into_inner();
    (channel, token.access_token)
}

/// The request with a bearer token.
pub(crate) fn bearing<T>(token: &str, mut request: Request<T>) -> Request<T> {
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}
