//! The calls of the commands: the method of core for each request.

use prost::Message;
use proto::{
    Idempotency, addresses_client::AddressesClient, api_clients_client::ApiClientsClient,
    master_keys_client::MasterKeysClient, personal_data_client::PersonalDataClient,
    price_lists_client::PriceListsClient, signing_keys_client::SigningKeysClient,
    stores_client::StoresClient, tasks_client::TasksClient, time_slots_client::TimeSlotsClient,
    webhooks_client::WebhooksClient, zones_client::ZonesClient,
};
use tonic::{Response, Status};

use crate::cli::{
    access::{Channel, Core},
    errors::call_error,
};

/// A request of one method.
pub(crate) trait Call {
    type Response;

    async fn send(self, channel: Channel) -> Result<Response<Self::Response>, Status>;
}

/// A request that can have an idempotency key.
pub(crate) trait Write: Call + Message + Clone {
    fn set_idempotency(&mut self, idempotency: Idempotency);
}

macro_rules! calls {
    ($($client:ident::$method:ident($request:ident) -> $response:ident;)+) => {$(
        impl Call for proto::$request {
            type Response = proto::$response;

            async fn send(self, channel: Channel) -> Result<Response<Self::Response>, Status> {
                $client::new(channel).$method(self).await
            }
        }
    )+};
}

macro_rules! writes {
    ($($client:ident::$method:ident($request:ident) -> $response:ident;)+) => {
        calls! { $($client::$method($request) -> $response;)+ }
        $(
            impl Write for proto::$request {
                fn set_idempotency(&mut self, idempotency: Idempotency) {
                    self.idempotency = Some(idempotency);
                }
            }
        )+
    };
}

calls! {
    AddressesClient::search_addresses(SearchAddressesRequest) -> SearchAddressesResponse;
    ApiClientsClient::list_api_clients(ListApiClientsRequest) -> ListApiClientsResponse;
    MasterKeysClient::reencrypt_secrets(ReencryptSecretsRequest) -> ReencryptSecretsResponse;
    PersonalDataClient::erase_deliveries(EraseDeliveriesRequest) -> EraseDeliveriesResponse;
    PriceListsClient::check_price_list(CheckPriceListRequest) -> CheckPriceListResponse;
    PriceListsClient::explain_price(ExplainPriceRequest) -> PriceExplanation;
    PriceListsClient::get_price_list(GetPriceListRequest) -> PriceList;
    PriceListsClient::list_price_lists(ListPriceListsRequest) -> ListPriceListsResponse;
    SigningKeysClient::list_signing_keys(ListSigningKeysRequest) -> ListSigningKeysResponse;
    StoresClient::get_store(GetStoreRequest) -> Store;
    StoresClient::list_stores(ListStoresRequest) -> ListStoresResponse;
    TasksClient::complete_task(CompleteTaskRequest) -> Task;
    TasksClient::get_task(GetTaskRequest) -> Task;
    TimeSlotsClient::check_time_slot(CheckTimeSlotRequest) -> CheckTimeSlotResponse;
    TimeSlotsClient::get_default_time_slot(GetDefaultTimeSlotRequest) -> TimeSlot;
    WebhooksClient::list_webhook_notifications(ListWebhookNotificationsRequest) -> ListWebhookNotificationsResponse;
    WebhooksClient::list_webhooks(ListWebhooksRequest) -> ListWebhooksResponse;
    WebhooksClient::test_webhook(TestWebhookRequest) -> WebhookTest;
    ZonesClient::check_zones(CheckZonesRequest) -> CheckZonesResponse;
    ZonesClient::get_zones(GetZonesRequest) -> ZoneSet;
}

writes! {
    ApiClientsClient::create_api_client(CreateApiClientRequest) -> ApiClient;
    ApiClientsClient::disable_api_client(DisableApiClientRequest) -> ApiClient;
    ApiClientsClient::rotate_api_client_secret(RotateApiClientSecretRequest) -> ApiClient;
    PriceListsClient::apply_price_list(ApplyPriceListRequest) -> PriceList;
    SigningKeysClient::revoke_signing_keys(RevokeSigningKeysRequest) -> RevokeSigningKeysResponse;
    SigningKeysClient::rotate_signing_key(RotateSigningKeyRequest) -> SigningKey;
    StoresClient::create_store(CreateStoreRequest) -> Store;
    StoresClient::update_store(UpdateStoreRequest) -> Store;
    TimeSlotsClient::apply_time_slot(ApplyTimeSlotRequest) -> TimeSlot;
    WebhooksClient::confirm_webhook_secret(ConfirmWebhookSecretRequest) -> Webhook;
    WebhooksClient::disable_webhook(DisableWebhookRequest) -> Webhook;
    WebhooksClient::enable_webhook(EnableWebhookRequest) -> Webhook;
    WebhooksClient::recover_webhook(RecoverWebhookRequest) -> RecoverWebhookResponse;
    WebhooksClient::resend_webhook_notification(ResendWebhookNotificationRequest) -> WebhookNotification;
    WebhooksClient::rotate_webhook_secret(RotateWebhookSecretRequest) -> Webhook;
    ZonesClient::apply_zones(ApplyZonesRequest) -> ZoneSet;
}

impl Core {
    /// The response to a request that changes nothing or can be repeated.
    pub(crate) async fn call<C: Call>(&self, request: C) -> anyhow::Result<C::Response> {
        self.call_explained(request, call_error).await
    }

    /// Like [`Core::call`]; an error is explained by `explain`.
    pub(crate) async fn call_explained<C: Call>(
        &self,
        request: C,
        explain: impl Fn(&Status) -> anyhow::Error,
    ) -> anyhow::Result<C::Response> {
        let response = request.send(self.channel.clone()).await;
        Ok(response.map_err(|status| explain(&status))?.into_inner())
    }
}
