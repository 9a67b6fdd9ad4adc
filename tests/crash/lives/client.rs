//! A client of any core over gRPC.

use std::time::{Duration, Instant};

use delivery::Credentials;
use proto::{
    ApiClient, AssignTasksRequest, AssignTasksResponse, CancelDeliveryRequest, CompleteTaskRequest,
    Courier, CreateApiClientRequest, CreateCourierRequest, CreateDeliveryRequest, Delivery,
    FailTaskRequest, GetCurrentApiClientRequest, GetTaskRequest, Idempotency,
    ListCourierListsRequest, ListCourierListsResponse, ListEventsRequest, ListEventsResponse,
    ListIncidentsRequest, ListIncidentsResponse, ListTaskEventsRequest, ListTaskEventsResponse,
    ListTasksRequest, ListTasksResponse, ReopenTaskRequest, Report, RescheduleTaskRequest,
    SetCourierListsRequest, SetCourierListsResponse, StartTaskRequest, Task,
    api_clients_client::ApiClientsClient, assign_tasks_request::Move,
    couriers_client::CouriersClient, deliveries_client::DeliveriesClient,
    events_client::EventsClient, incidents_client::IncidentsClient, task_event::Actor,
    tasks_client::TasksClient,
};
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

use super::journal::{Command, Kind, Outcome, micros, timestamp};
use crate::grpc;

/// Longer than a core takes to start again.
pub(super) const TIMEOUT: Duration = Duration::from_secs(40);

/// An immediate retry would take processor time from the recovering platform.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(super) struct Client {
    cores: Vec<Channel>,
    token: String,
    /// `api_apps/<id>`.
    pub(super) name: String,
    pub(super) by: Actor,
    /// Of a phone.
    pub(super) courier: String,
}

macro_rules! calls {
    ($($service:ident.$rpc:ident($request:ident) -> $response:ident;)+) => {
        impl Client {$(
            /// At a core, counted from 0 and again from the first after the last.
            pub(super) async fn $rpc(&self, core: usize, request: $request) -> Result<$response, Status> {
                let core = self.cores[core % self.cores.len()].clone();
                let request = grpc::with_token(&self.token, request);
                Ok($service::new(core).$rpc(request).await?.into_inner())
            }
        )+}
    };
}

calls! {
    ApiClientsClient.create_api_client(CreateApiClientRequest) -> ApiClient;
    CouriersClient.create_courier(CreateCourierRequest) -> Courier;
    CouriersClient.list_courier_lists(ListCourierListsRequest) -> ListCourierListsResponse;
    CouriersClient.set_courier_lists(SetCourierListsRequest) -> SetCourierListsResponse;
    CouriersClient.assign_tasks(AssignTasksRequest) -> AssignTasksResponse;
    DeliveriesClient.create_delivery(CreateDeliveryRequest) -> Delivery;
    DeliveriesClient.cancel_delivery(CancelDeliveryRequest) -> Delivery;
    EventsClient.list_events(ListEventsRequest) -> ListEventsResponse;
    IncidentsClient.list_incidents(ListIncidentsRequest) -> ListIncidentsResponse;
    TasksClient.get_task(GetTaskRequest) -> Task;
    TasksClient.list_tasks(ListTasksRequest) -> ListTasksResponse;
    TasksClient.list_task_events(ListTaskEventsRequest) -> ListTaskEventsResponse;
    TasksClient.start_task(StartTaskRequest) -> Task;
    TasksClient.complete_task(CompleteTaskRequest) -> Task;
    TasksClient.fail_task(FailTaskRequest) -> Task;
    TasksClient.reopen_task(ReopenTaskRequest) -> Task;
    TasksClient.reschedule_task(RescheduleTaskRequest) -> Task;
}

impl Client {
    pub(super) async fn authorized(
        core_urls: &[String],
        credentials: &Credentials,
        scopes: &[&str],
    ) -> Self {
        let (channel, token) = grpc::connect(&core_urls[0], credentials, scopes).await;
        let request = grpc::with_token(&token, GetCurrentApiClientRequest {});
        let mut clients = ApiClientsClient::new(channel);
        let client = clients.get_current_api_client(request).await.unwrap();
        let client = client.into_inner();
        let connect = |url: &String| {
            let endpoint = Endpoint::from_shared(url.clone()).unwrap();
            endpoint.timeout(TIMEOUT).connect_lazy()
        };
        Self {
            cores: core_urls.iter().map(connect).collect(),
            token,
            name: client.name,
            by: match scopes {
                ["courier"] => Actor::Courier,
                ["dispatch"] => Actor::Dispatch,
                _ => Actor::Shop,
            },
            courier: client.courier,
        }
    }

    /// Sends a command once; fails if the answer was lost.
    pub(super) async fn send(&self, core: usize, command: &Command) -> Result<Outcome, Status> {
        match Box::pin(self.call(core, command)).await {
            Err(status) if !is_lost(&status) => {
                let info = status.get_details_error_info();
                Ok(Outcome::Refused(
                    info.map(|info| info.reason).unwrap_or_default(),
                ))
            }
            answer => answer,
        }
    }

    async fn call(&self, core: usize, command: &Command) -> Result<Outcome, Status> {
        let idempotency = idempotency(&command.key);
        let (report, notes) = (report(command), command.key.clone());
        /// Calls for the task, with these fields more.
        macro_rules! call {
            ($rpc:ident($request:ident $(, $field:ident: $value:expr)*)) => {{
                let request = $request {
                    name: command.task.clone(),
                    $($field: $value,)*
                    idempotency,
                    report,
                    ..Default::default()
                };
                self.$rpc(core, request).await?
            }};
        }
        let task = match &command.kind {
            Kind::Start => call!(start_task(StartTaskRequest)),
            Kind::Complete => call!(complete_task(CompleteTaskRequest, notes: notes)),
            Kind::Fail => {
                let reason = "REFUSED".to_owned();
                call!(fail_task(FailTaskRequest, notes: notes, reason: reason))
            }
            Kind::Reopen => call!(reopen_task(ReopenTaskRequest)),
            Kind::Reschedule { window, both } => {
                let [after, before] = window.map(timestamp);
                call!(reschedule_task(RescheduleTaskRequest, after: after, before: before, both: *both))
            }
            Kind::Cancel(name) => {
                let request = CancelDeliveryRequest {
                    name: name.clone(),
                    report,
                    idempotency,
                };
                self.cancel_delivery(core, request).await?;
                return Ok(Outcome::Done(None));
            }
            Kind::Assign { from, single } => {
                let target = command.tasks[&command.task].clone();
                let target = target.map(|list| [list.courier, list.day]);
                let [courier, day] = target.unwrap_or_default();
                let named = Move {
                    task: command.task.clone(),
                    expected_courier: Some(from.clone()),
                };
                let request = AssignTasksRequest {
                    moves: vec![named],
                    courier,
                    day,
                    single: *single,
                    idempotency,
                    ..Default::default()
                };
                let assigned = self.assign_tasks(core, request).await?;
                let conflict = assigned.conflicts.first();
                let conflict = conflict.map(|_| Outcome::Refused("CONFLICT".to_owned()));
                return Ok(conflict.unwrap_or(Outcome::Done(None)));
            }
            Kind::Set { day, lists } => {
                let request = SetCourierListsRequest {
                    day: day.clone(),
                    lists: lists.clone(),
                    idempotency,
                };
                self.set_courier_lists(core, request).await?;
                return Ok(Outcome::Done(None));
            }
        };
        Ok(Outcome::Done(Some((task.state(), micros(task.state_time)))))
    }
}

/// Repeats a call that may be executed several times until it succeeds.
pub(super) async fn until_answered<T, R>(call: impl Fn(usize) -> R) -> T
where
    R: Future<Output = Result<T, Status>>,
{
    let deadline = Instant::now() + TIMEOUT;
    for core in 0.. {
        match call(core).await {
            Ok(answer) => return answer,
            Err(status) => {
                let may_succeed = is_lost(&status) && Instant::now() < deadline;
                assert!(may_succeed, "{status:?}");
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    unreachable!()
}

/// Whether the call may have been executed, or may be if it is repeated. A status of core itself has details.
fn is_lost(status: &Status) -> bool {
    let again = [
        "UNAVAILABLE",
        "OVERLOADED",
        "IDEMPOTENCY_KEY_IN_USE",
        proto::NOT_EXECUTED,
    ];
    status
        .get_details_error_info()
        .is_none_or(|info| again.contains(&&*info.reason))
}

/// No two requests have the same key.
#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
pub(super) fn idempotency(key: &str) -> Option<Idempotency> {
    Some(Idempotency {
        key: key.to_owned(),
        request_hash: vec![7; 32],
    })
}

#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
fn report(command: &Command) -> Option<Report> {
    let is_for_courier = command.by == Actor::Dispatch;
    let sent = command.sent.last();
    Some(Report {
        occurred_time: timestamp(command.occurred + command.skew),
        sent_time: sent.and_then(|sent| timestamp(sent + command.skew)),
        on_behalf_of: if is_for_courier {
            command.courier.clone()
        } else {
            String::new()
        },
    })
}
