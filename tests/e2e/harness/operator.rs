//! The platform's operator over gRPC: creates stores and API clients, applies definitions.

use delivery::Credentials;
use futures_util::stream;
use proto::{
    AddressDraft, ApiClient, CreateApiClientRequest, CreateCourierRequest, CreateStoreRequest,
    DisableApiClientRequest, ListApiClientsRequest, ReportIncidentRequest,
    RotateApiClientSecretRequest, UploadImageRequest, api_clients_client::ApiClientsClient,
    couriers_client::CouriersClient, images_client::ImagesClient,
    incidents_client::IncidentsClient, stores_client::StoresClient,
};
use tonic::{Request, Response, Status, transport::Channel};

use super::{definitions::Definitions, grpc, image::jpeg};

pub(crate) struct Operator {
    channel: Channel,
    token: String,
    definitions: Definitions,
}

impl Operator {
    pub(crate) async fn authorized(core_url: &str, credentials: &Credentials) -> Self {
        let (channel, token) = grpc::connect(core_url, credentials, &["admin"]).await;
        Self {
            definitions: Definitions::new(channel.clone(), token.clone()),
            channel,
            token,
        }
    }

    /// Creates a store with nothing but a display name; returns its name (`stores/<id>`).
    pub(crate) async fn create_store(&self, display_name: &str) -> String {
        self.create_store_with(CreateStoreRequest {
            display_name: display_name.to_owned(),
            ..CreateStoreRequest::default()
        })
        .await
    }

    /// Creates a store as requested; returns its name.
    pub(crate) async fn create_store_with(&self, request: CreateStoreRequest) -> String {
        StoresClient::new(self.channel.clone())
            .create_store(self.request(request))
            .await
            .unwrap()
            .into_inner()
            .name
    }

    /// Creates an API client of a store.
    pub(crate) async fn create_client(&self, store: &str, scopes: &[&str]) -> Credentials {
        self.create_client_with_address(store, scopes, None).await
    }

    /// Creates an API client with a default pickup address.
    pub(crate) async fn create_client_with_address(
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
                ..CreateApiClientRequest::default()
            }))
            .await;
        issued(client)
    }

    /// Creates an API client of a courier (`couriers/<id>`).
    pub(crate) async fn create_courier_client(&self, courier: &str) -> Credentials {
        let request = CreateApiClientRequest {
            courier: courier.to_owned(),
            display_name: "A phone".to_owned(),
            scopes: vec!["courier".to_owned()],
            ..CreateApiClientRequest::default()
        };
        let mut clients = ApiClientsClient::new(self.channel.clone());
        issued(clients.create_api_client(self.request(request)).await)
    }

    /// Creates a courier; returns its name.
    pub(crate) async fn create_courier(&self, display_name: &str) -> String {
        let request = CreateCourierRequest {
            display_name: display_name.to_owned(),
            ..CreateCourierRequest::default()
        };
        let mut couriers = CouriersClient::new(self.channel.clone());
        let courier = couriers.create_courier(self.request(request)).await;
        courier.unwrap().into_inner().name
    }

    /// Reports an incident of a task (`tasks/<id>`); returns its name.
    pub(crate) async fn report_incident(&self, task: &str, description: &str) -> String {
        let request = ReportIncidentRequest {
            task: task.to_owned(),
            description: description.to_owned(),
            failure_reason: "DAMAGED".to_owned(),
            ..ReportIncidentRequest::default()
        };
        let mut incidents = IncidentsClient::new(self.channel.clone());
        let incident = incidents.report_incident(self.request(request)).await;
        incident.unwrap().into_inner().name
    }

    /// Uploads an image of a task (`tasks/<id>`); returns its name.
    pub(crate) async fn upload_image(&self, task: &str) -> String {
        let whole = UploadImageRequest {
            parent: task.to_owned(),
            content: jpeg("parcel", ""),
            is_last: true,
            ..UploadImageRequest::default()
        };
        let mut images = ImagesClient::new(self.channel.clone());
        let image = images.upload_image(self.request(stream::iter([whole])));
        image.await.unwrap().into_inner().name
    }

    /// Disables an API client for good.
    pub(crate) async fn disable_client(&self, credentials: &Credentials) {
        let name = self.client_name(credentials).await;
        ApiClientsClient::new(self.channel.clone())
            .disable_api_client(self.request(DisableApiClientRequest {
                name,
                idempotency: None,
            }))
            .await
            .unwrap();
    }

    /// Rotates a client's secret; returns the new credentials. The overlap is in seconds.
    pub(crate) async fn rotate_secret(
        &self,
        credentials: &Credentials,
        overlap: Option<u32>,
    ) -> Credentials {
        let name = self.client_name(credentials).await;
        let client = ApiClientsClient::new(self.channel.clone())
            .rotate_api_client_secret(self.request(RotateApiClientSecretRequest {
                name,
                overlap_seconds: overlap,
                idempotency: None,
            }))
            .await;
        issued(client)
    }

    /// `api_apps/<id>` of a client.
    pub(crate) async fn client_name(&self, credentials: &Credentials) -> String {
        let listed = ApiClientsClient::new(self.channel.clone())
            .list_api_clients(self.request(ListApiClientsRequest::default()))
            .await
            .unwrap()
            .into_inner();
        let mut clients = listed.api_clients.into_iter();
        let client = clients.find(|client| client.api_key == credentials.api_key);
        client.unwrap().name
    }

    /// Applies a store's default time slot (TOML).
    pub(crate) async fn apply_time_slot(&self, store: &str, definition: &str) {
        let applied = self.definitions.apply_time_slot(store, definition);
        applied.await.unwrap();
    }

    /// Applies a store's price list (TOML).
    pub(crate) async fn apply_price_list(&self, store: &str, definition: &str) {
        let applied = self.definitions.apply_price_list(store, definition);
        applied.await.unwrap();
    }

    /// Adds zones (GeoJSON) to the platform.
    pub(crate) async fn apply_zones(&self, definition: &str) {
        self.definitions.apply_zones(definition).await.unwrap();
    }

    fn request<T>(&self, message: T) -> Request<T> {
        grpc::with_token(&self.token, message)
    }
}

/// The credentials in the response that issued them.
fn issued(response: Result<Response<ApiClient>, Status>) -> Credentials {
    let client = response.unwrap().into_inner();
    Credentials {
        api_key: client.api_key,
        api_secret: client.api_secret,
    }
}
