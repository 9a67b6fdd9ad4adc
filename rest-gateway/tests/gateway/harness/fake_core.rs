//! A fake core: records requests and sends scripted responses.

use std::{
    any::Any,
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::stream::{self, BoxStream, Empty, StreamExt as _};
use proto::{
    CreateDeliveryRequest, GetImageResponse, Violation,
    deliveries_server::{Deliveries, DeliveriesServer},
    images_server::{Images, ImagesServer},
    incidents_server::{Incidents, IncidentsServer},
    retail_prices_server::{RetailPrices, RetailPricesServer},
    tasks_server::{Tasks, TasksServer},
    time_slots_server::{TimeSlots, TimeSlotsServer},
    tokens_server::{Tokens, TokensServer},
    tracking_server::{Tracking, TrackingServer},
    webhooks_server::{Webhooks, WebhooksServer},
};
use rest_gateway::CoreUrl;
use tokio::{net::TcpListener, sync::Notify};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{
    Code, Request, Response, Status, Streaming, async_trait,
    metadata::{MetadataMap, MetadataValue},
    transport::{Server, server::TcpIncoming},
};
use tonic_types::{ErrorDetails, FieldViolation};

use crate::harness::samples::core_status_with;

/// Far longer than the gateway takes for a call.
const TIMEOUT: Duration = Duration::from_secs(20);

type Message = Box<dyn Any + Send>;

pub(crate) struct FakeCore {
    addr: SocketAddr,
    services: ScriptedServices,
    _shutdown: DropGuard,
}

enum Script {
    Respond(Message),
    /// A response with a key in its metadata.
    RespondMarked(&'static str, Message),
    Fail(Status),
    /// Fails with the violations in the request, a `CreateDelivery`.
    ReturnViolations,
    Panic,
    Hang,
}

#[derive(Clone, Default)]
struct ScriptedServices {
    scripts: Arc<Mutex<VecDeque<Script>>>,
    received: Arc<Mutex<VecDeque<(MetadataMap, Message)>>>,
    called: Arc<Notify>,
}

impl FakeCore {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let services = ScriptedServices::default();
        let shutdown = CancellationToken::new();
        let server = Server::builder()
            .add_service(TokensServer::new(services.clone()))
            .add_service(DeliveriesServer::new(services.clone()))
            .add_service(TasksServer::new(services.clone()))
            .add_service(IncidentsServer::new(services.clone()))
            .add_service(ImagesServer::new(services.clone()))
            .add_service(RetailPricesServer::new(services.clone()))
            .add_service(TimeSlotsServer::new(services.clone()))
            .add_service(WebhooksServer::new(services.clone()))
            .add_service(TrackingServer::new(services.clone()))
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)));
        tokio::spawn(shutdown.clone().run_until_cancelled_owned(server));
        Self {
            addr,
            services,
            _shutdown: shutdown.drop_guard(),
        }
    }

    pub(crate) fn url(&self) -> CoreUrl {
        format!("http://{}", self.addr).parse().unwrap()
    }

    /// The next call returns this message.
    pub(crate) fn will_respond<R: Any + Send>(&self, response: R) {
        self.script(Script::Respond(Box::new(response)));
    }

    /// The next call returns this message, marked as replayed.
    pub(crate) fn will_replay<R: Any + Send>(&self, response: R) {
        self.will_respond_marked(proto::IDEMPOTENT_REPLAYED, response);
    }

    /// The next call returns this message, with a key in its metadata.
    pub(crate) fn will_respond_marked<R: Any + Send>(&self, key: &'static str, response: R) {
        self.script(Script::RespondMarked(key, Box::new(response)));
    }

    pub(crate) fn will_fail(&self, status: Status) {
        self.script(Script::Fail(status));
    }

    /// The next `CreateDelivery` fails with the violations in its request.
    pub(crate) fn will_return_violations(&self) {
        self.script(Script::ReturnViolations);
    }

    /// The next call ends with a stream reset, as if core were killed.
    pub(crate) fn will_panic(&self) {
        self.script(Script::Panic);
    }

    pub(crate) fn will_hang(&self) {
        self.script(Script::Hang);
    }

    fn script(&self, script: Script) {
        self.services.scripts.lock().unwrap().push_back(script);
    }

    /// The message of the oldest call that the test has not taken yet.
    pub(crate) fn received<M: Any>(&self) -> M {
        self.received_with_metadata().1
    }

    pub(crate) fn received_with_metadata<M: Any>(&self) -> (MetadataMap, M) {
        let (metadata, message) = self
            .services
            .received
            .lock()
            .unwrap()
            .pop_front()
            .expect("core was not called");
        let message = message.downcast().expect("wrong type of received request");
        (metadata, *message)
    }

    /// Waits for a call.
    pub(crate) async fn next_call(&self) {
        let called = self.services.called.notified();
        let called = tokio::time::timeout(TIMEOUT, called).await;
        called.expect("core should be called");
    }

    /// Whether there is a call that the test has not read.
    pub(crate) fn has_unread_call(&self) -> bool {
        !self.services.received.lock().unwrap().is_empty()
    }
}

impl ScriptedServices {
    async fn respond<M: Any + Send, R: Any>(
        &self,
        request: Request<M>,
    ) -> Result<Response<R>, Status> {
        let (metadata, _, message) = request.into_parts();
        let violations = (&message as &dyn Any)
            .downcast_ref::<CreateDeliveryRequest>()
            .map(|request| request.violations.clone());
        self.received
            .lock()
            .unwrap()
            .push_back((metadata, Box::new(message)));
        self.called.notify_one();
        let script = self.scripts.lock().unwrap().pop_front();
        match script {
            Some(Script::Respond(response)) => {
                let response = response.downcast().expect("wrong scripted response type");
                Ok(Response::new(*response))
            }
            Some(Script::RespondMarked(key, response)) => {
                let response = response.downcast().expect("wrong scripted response type");
                let mut response = Response::new(*response);
                let value = MetadataValue::from_static("true");
                response.metadata_mut().insert(key, value);
                Ok(response)
            }
            Some(Script::Fail(status)) => Err(status),
            Some(Script::ReturnViolations) => Err(invalid(violations.unwrap_or_default())),
            Some(Script::Panic) => panic!("as scripted"),
            Some(Script::Hang) => std::future::pending().await,
            None => Err(Status::internal("no response was scripted")),
        }
    }
}

fn invalid(violations: Vec<Violation>) -> Status {
    let violations = violations.into_iter().map(|violation| FieldViolation {
        field: violation.field,
        description: violation.description,
        reason: violation.reason,
        localized_message: None,
    });
    core_status_with(
        Code::InvalidArgument,
        "VALIDATION_FAILED",
        "violations",
        ErrorDetails::with_bad_request(violations.collect::<Vec<_>>()),
    )
}

#[async_trait]
impl Images for ScriptedServices {
    type GetImageStream = BoxStream<'static, Result<GetImageResponse, Status>>;

    async fn upload_image(
        &self,
        request: Request<Streaming<proto::UploadImageRequest>>,
    ) -> Result<Response<proto::Image>, Status> {
        self.respond(request.map(drop)).await
    }

    /// Its response is a vector of the messages.
    async fn get_image(
        &self,
        request: Request<proto::GetImageRequest>,
    ) -> Result<Response<Self::GetImageStream>, Status> {
        let response: Response<Vec<Result<GetImageResponse, Status>>> =
            self.respond(request).await?;
        Ok(response.map(|messages| stream::iter(messages).boxed()))
    }
}

macro_rules! scripted_services {
    ($($service:ident {
        $($rpc:ident: $request:ident => $response:ident,)*
        $([$stream:ident] $watch:ident: $watch_request:ident => $watch_response:ident,)?
    })*) => {
        $(#[async_trait]
        impl $service for ScriptedServices {
            $(async fn $rpc(
                &self,
                request: Request<proto::$request>,
            ) -> Result<Response<proto::$response>, Status> {
                self.respond(request).await
            })*
            $(
                type $stream = Empty<Result<proto::$watch_response, Status>>;

                async fn $watch(
                    &self,
                    _: Request<proto::$watch_request>,
                ) -> Result<Response<Self::$stream>, Status> {
                    Err(Status::unimplemented("gateways do not watch"))
                }
            )?
        })*
    };
}

scripted_services! {
    Tokens {
        issue_token: IssueTokenRequest => AccessToken,
        list_public_keys: ListPublicKeysRequest => ListPublicKeysResponse,
    }
    Deliveries {
        create_delivery: CreateDeliveryRequest => Delivery,
        assert_delivery: AssertDeliveryRequest => Delivery,
        get_delivery: GetDeliveryRequest => Delivery,
        list_deliveries: ListDeliveriesRequest => ListDeliveriesResponse,
        search_deliveries: SearchDeliveriesRequest => SearchDeliveriesResponse,
        cancel_delivery: CancelDeliveryRequest => Delivery,
    }
    Tasks {
        get_task: GetTaskRequest => Task,
        list_tasks: ListTasksRequest => ListTasksResponse,
        start_task: StartTaskRequest => Task,
        complete_task: CompleteTaskRequest => Task,
        complete_tasks: CompleteTasksRequest => CompleteTasksResponse,
        fail_task: FailTaskRequest => Task,
        reopen_task: ReopenTaskRequest => Task,
        reschedule_task: RescheduleTaskRequest => Task,
        update_task: UpdateTaskRequest => Task,
        list_task_events: ListTaskEventsRequest => ListTaskEventsResponse,
        [WatchTasksStream] watch_tasks: WatchTasksRequest => WatchTasksResponse,
    }
    Incidents {
        report_incident: ReportIncidentRequest => Incident,
        list_incidents: ListIncidentsRequest => ListIncidentsResponse,
        close_incident: CloseIncidentRequest => Incident,
    }
    RetailPrices {
        calculate_retail_price: CalculateRetailPriceRequest => RetailPrice,
        get_retail_price: GetRetailPriceRequest => RetailPrice,
    }
    TimeSlots {
        list_time_slot_choices: ListTimeSlotChoicesRequest => ListTimeSlotChoicesResponse,
        apply_time_slot: ApplyTimeSlotRequest => TimeSlot,
        check_time_slot: CheckTimeSlotRequest => CheckTimeSlotResponse,
        get_default_time_slot: GetDefaultTimeSlotRequest => TimeSlot,
        get_time_slot: GetTimeSlotRequest => TimeSlot,
    }
    Tracking {
        get_tracking: GetTrackingRequest => TrackedDelivery,
        get_tracking_logo: GetTrackingLogoRequest => TrackingLogo,
        revoke_tracking: RevokeTrackingRequest => Delivery,
    }
    Webhooks {
        create_webhook: CreateWebhookRequest => Webhook,
        get_webhook: GetWebhookRequest => Webhook,
        list_webhooks: ListWebhooksRequest => ListWebhooksResponse,
        delete_webhook: DeleteWebhookRequest => DeleteWebhookResponse,
        enable_webhook: EnableWebhookRequest => Webhook,
        disable_webhook: DisableWebhookRequest => Webhook,
        rotate_webhook_secret: RotateWebhookSecretRequest => Webhook,
        confirm_webhook_secret: ConfirmWebhookSecretRequest => Webhook,
        list_webhook_notifications: ListWebhookNotificationsRequest => ListWebhookNotificationsResponse,
        get_webhook_notification: GetWebhookNotificationRequest => WebhookNotification,
        resend_webhook_notification: ResendWebhookNotificationRequest => WebhookNotification,
        recover_webhook: RecoverWebhookRequest => RecoverWebhookResponse,
        test_webhook: TestWebhookRequest => WebhookTest,
    }
}
