//! The calls of the commands: the method of core for each request. Writes have an idempotency key, with
//! which the command retries them, and the operator can repeat it.

use std::{error::Error as _, time::Duration};

use prost::Message;
use proto::{
    Idempotency, addresses_client::AddressesClient, api_clients_client::ApiClientsClient,
    audit_client::AuditClient, couriers_client::CouriersClient,
    deliveries_client::DeliveriesClient, incidents_client::IncidentsClient,
    master_keys_client::MasterKeysClient, personal_data_client::PersonalDataClient,
    price_lists_client::PriceListsClient, signing_keys_client::SigningKeysClient,
    stores_client::StoresClient, tasks_client::TasksClient, time_slots_client::TimeSlotsClient,
    tracking_client::TrackingClient, webhooks_client::WebhooksClient, zones_client::ZonesClient,
};
use sha2::{Digest, Sha256};
use tonic::{Code, Response, Status};
use tonic_types::StatusExt;

use crate::cli::{
    access::{Channel, Core},
    errors::call_error,
};

/// How long to wait before the second attempt.
const RETRY_DELAY: Duration = Duration::from_secs(1);

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
    AuditClient::list_audit_events(ListAuditEventsRequest) -> ListAuditEventsResponse;
    CouriersClient::get_courier(GetCourierRequest) -> Courier;
    CouriersClient::list_courier_lists(ListCourierListsRequest) -> ListCourierListsResponse;
    CouriersClient::list_couriers(ListCouriersRequest) -> ListCouriersResponse;
    DeliveriesClient::get_delivery(GetDeliveryRequest) -> Delivery;
    DeliveriesClient::list_deliveries(ListDeliveriesRequest) -> ListDeliveriesResponse;
    DeliveriesClient::search_deliveries(SearchDeliveriesRequest) -> SearchDeliveriesResponse;
    IncidentsClient::list_incidents(ListIncidentsRequest) -> ListIncidentsResponse;
    MasterKeysClient::reencrypt_secrets(ReencryptSecretsRequest) -> ReencryptSecretsResponse;
    PersonalDataClient::erase_deliveries(EraseDeliveriesRequest) -> EraseDeliveriesResponse;
    PriceListsClient::check_price_list(CheckPriceListRequest) -> CheckPriceListResponse;
    PriceListsClient::explain_price(ExplainPriceRequest) -> PriceExplanation;
    PriceListsClient::get_price_list(GetPriceListRequest) -> PriceList;
    PriceListsClient::list_price_lists(ListPriceListsRequest) -> ListPriceListsResponse;
    SigningKeysClient::list_signing_keys(ListSigningKeysRequest) -> ListSigningKeysResponse;
    StoresClient::get_store(GetStoreRequest) -> Store;
    StoresClient::list_stores(ListStoresRequest) -> ListStoresResponse;
    TasksClient::get_task(GetTaskRequest) -> Task;
    TasksClient::list_tasks(ListTasksRequest) -> ListTasksResponse;
    TimeSlotsClient::check_time_slot(CheckTimeSlotRequest) -> CheckTimeSlotResponse;
    TimeSlotsClient::get_default_time_slot(GetDefaultTimeSlotRequest) -> TimeSlot;
    TrackingClient::revoke_tracking(RevokeTrackingRequest) -> Delivery;
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
    CouriersClient::assign_tasks(AssignTasksRequest) -> AssignTasksResponse;
    CouriersClient::create_courier(CreateCourierRequest) -> Courier;
    CouriersClient::update_courier(UpdateCourierRequest) -> Courier;
    DeliveriesClient::cancel_delivery(CancelDeliveryRequest) -> Delivery;
    IncidentsClient::close_incident(CloseIncidentRequest) -> Incident;
    PriceListsClient::apply_price_list(ApplyPriceListRequest) -> PriceList;
    SigningKeysClient::revoke_signing_keys(RevokeSigningKeysRequest) -> RevokeSigningKeysResponse;
    SigningKeysClient::rotate_signing_key(RotateSigningKeyRequest) -> SigningKey;
    StoresClient::create_store(CreateStoreRequest) -> Store;
    StoresClient::disable_store(DisableStoreRequest) -> Store;
    StoresClient::enable_store(EnableStoreRequest) -> Store;
    StoresClient::update_store(UpdateStoreRequest) -> Store;
    TasksClient::complete_task(CompleteTaskRequest) -> Task;
    TasksClient::fail_task(FailTaskRequest) -> Task;
    TasksClient::reopen_task(ReopenTaskRequest) -> Task;
    TasksClient::reschedule_task(RescheduleTaskRequest) -> Task;
    TasksClient::start_task(StartTaskRequest) -> Task;
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

    /// Like [`Core::write_explained`], with the errors of [`call_error`].
    pub(crate) async fn write<W: Write>(&self, message: W) -> anyhow::Result<W::Response> {
        self.write_explained(message, call_error).await
    }

    /// Executes a write, and a second time with the same idempotency key if its outcome is unknown.
    /// If it still is, the error has the command that repeats the write; any other error is
    /// explained by `explain`.
    pub(crate) async fn write_explained<W: Write>(
        &self,
        mut message: W,
        explain: impl Fn(&Status) -> anyhow::Error,
    ) -> anyhow::Result<W::Response> {
        message.set_idempotency(Idempotency {
            key: self.idempotency_key.clone(),
            request_hash: Sha256::digest(message.encode_to_vec()).to_vec(),
        });
        let mut response = message.clone().send(self.channel.clone()).await;
        // An error of the second attempt says nothing about the first.
        let is_unknown = response.as_ref().is_err_and(is_outcome_unknown);
        if is_unknown {
            tokio::time::sleep(RETRY_DELAY).await;
            response = message.send(self.channel.clone()).await;
        }
        match response {
            Ok(response) => {
                if response.metadata().contains_key(proto::IDEMPOTENT_REPLAYED) {
                    eprintln!(
                        "note: an earlier attempt of this command took effect; this is its output"
                    );
                }
                Ok(response.into_inner())
            }
            Err(status) if is_unknown => Err(anyhow::anyhow!(
                "{}\nIt is not known whether the command took effect. Repeat it with its \
                 idempotency key within 7 days: it takes effect once, and prints the same \
                 output:\n{}",
                explain(&status),
                repetition(&self.idempotency_key)
            )),
            Err(status) => Err(explain(&status)),
        }
    }
}

/// Whether core may have executed a write that failed with this status.
fn is_outcome_unknown(status: &Status) -> bool {
    let is_ambiguous = matches!(
        status.code(),
        Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Aborted
            | Code::Unknown
    );
    let info = status.get_details_error_info();
    let may_be_executed = info.is_none_or(|info| info.reason != proto::NOT_EXECUTED);
    // A status with a source is tonic's: core's response did not arrive.
    status.source().is_some() || (is_ambiguous && may_be_executed)
}

/// This command with its idempotency key, for a shell.
fn repetition(key: &str) -> String {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    repeated(arguments.collect(), key)
}

fn repeated(mut arguments: Vec<String>, key: &str) -> String {
    const FLAG: &str = "--idempotency-key";
    if !arguments.iter().any(|argument| argument.starts_with(FLAG)) {
        arguments.push(format!("{FLAG}={key}"));
    }
    shlex::try_join(arguments.iter().map(String::as_str))
        .expect("the arguments of a process contain no NUL")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn a_repeated_command_has_its_key_once_and_is_quoted_for_a_shell() {
        let words = |arguments: &[&str]| {
            let arguments = arguments.iter().map(ToString::to_string);
            shlex::split(&repeated(arguments.collect(), "k 1")).unwrap()
        };

        let name = "L'Épicerie \"$1\"";
        assert_eq!(
            words(&["delivery", "stores", "create", "--name", name]),
            [
                "delivery",
                "stores",
                "create",
                "--name",
                name,
                "--idempotency-key=k 1"
            ]
        );
        for given in [
            &["--idempotency-key=k 1"][..],
            &["--idempotency-key", "k 1"],
        ] {
            assert_eq!(words(given), given);
        }
    }

    #[test]
    fn the_outcome_is_unknown_if_core_may_have_executed_the_write() {
        for (code, expected) in [
            (Code::Unavailable, true),
            (Code::Aborted, true),
            (Code::InvalidArgument, false),
            (Code::FailedPrecondition, false),
            (Code::ResourceExhausted, false),
            (Code::Internal, false),
        ] {
            assert_eq!(
                is_outcome_unknown(&Status::new(code, "")),
                expected,
                "{code}"
            );
        }
        let details = ErrorDetails::with_error_info(proto::NOT_EXECUTED, "", HashMap::new());
        let not_executed = Status::with_error_details(Code::Unavailable, "", details);
        assert!(!is_outcome_unknown(&not_executed));
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(is_outcome_unknown(&Status::from_error(Box::new(reset))));
    }
}
