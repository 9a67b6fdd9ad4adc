//! A client of core over gRPC, which repeats each call at any core until it is answered.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use delivery::Credentials;
use proto::{
    ApiClient, AssignTasksRequest, AssignTasksResponse, CancelDeliveryRequest,
    CloseIncidentRequest, CompleteTaskRequest, Courier, CourierList, CreateApiClientRequest,
    CreateCourierRequest, CreateDeliveryRequest, Delivery, FailTaskRequest,
    GetCurrentApiClientRequest, GetTaskRequest, Idempotency, Incident, ListCourierListsRequest,
    ListCourierListsResponse, ListEventsRequest, ListEventsResponse, ListIncidentsRequest,
    ListIncidentsResponse, ListTaskEventsRequest, ListTaskEventsResponse, ListTasksRequest,
    ListTasksResponse, ReopenTaskRequest, Report, ReportIncidentRequest, RescheduleTaskRequest,
    SetCourierListsRequest, SetCourierListsResponse, StartTaskRequest, Task, WatchTasksRequest,
    WatchTasksResponse, api_clients_client::ApiClientsClient, assign_tasks_request::Move,
    couriers_client::CouriersClient, deliveries_client::DeliveriesClient,
    events_client::EventsClient, incidents_client::IncidentsClient, tasks_client::TasksClient,
};
use tonic::{
    Status, Streaming,
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

use super::journal::{Command, Journal, Kind, Outcome, micros, now, timestamp};
use crate::{grpc, random::Random};

/// Longer than a core takes to start again.
const TIMEOUT: Duration = Duration::from_secs(40);

/// An immediate retry would take processor time from the recovering platform.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// The reasons of refusals that are stored with the key; of CONFLICT, the answer is.
const STORED: [&str; 2] = ["TASK_STATE", "CONFLICT"];

/// One answered command in this many is repeated.
const REPEATING: u64 = 8;

type TaskChanges = Streaming<WatchTasksResponse>;

#[derive(Clone)]
pub(super) struct Client {
    cores: Vec<Channel>,
    token: String,
    /// `api_apps/<id>`.
    pub(super) name: String,
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
    IncidentsClient.report_incident(ReportIncidentRequest) -> Incident;
    IncidentsClient.list_incidents(ListIncidentsRequest) -> ListIncidentsResponse;
    IncidentsClient.close_incident(CloseIncidentRequest) -> Incident;
    TasksClient.get_task(GetTaskRequest) -> Task;
    TasksClient.list_tasks(ListTasksRequest) -> ListTasksResponse;
    TasksClient.list_task_events(ListTaskEventsRequest) -> ListTaskEventsResponse;
    TasksClient.start_task(StartTaskRequest) -> Task;
    TasksClient.complete_task(CompleteTaskRequest) -> Task;
    TasksClient.fail_task(FailTaskRequest) -> Task;
    TasksClient.reopen_task(ReopenTaskRequest) -> Task;
    TasksClient.reschedule_task(RescheduleTaskRequest) -> Task;
    TasksClient.watch_tasks(WatchTasksRequest) -> TaskChanges;
}

/// The answer to a command, and the lists that it has.
struct Answer {
    outcome: Outcome,
    lists: Vec<CourierList>,
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
        let connect = |url: &String| {
            let endpoint = Endpoint::from_shared(url.clone()).unwrap();
            endpoint.timeout(TIMEOUT).connect_lazy()
        };
        Self {
            cores: core_urls.iter().map(connect).collect(),
            token,
            name: client.into_inner().name,
        }
    }

    /// Sends a command until it is answered, and records it. A client that may give up does so now and then when an
    /// answer was lost.
    pub(super) async fn execute(
        &self,
        journal: &Journal,
        random: &mut Random,
        mut command: Command,
        may_give_up: bool,
    ) {
        let deadline = Instant::now() + TIMEOUT;
        let has_key = !matches!(command.kind, Kind::Cancel(_));
        command.invoked = now();
        command.outcome = loop {
            match self.attempt(journal, random, &mut command).await {
                Ok(outcome) => break outcome,
                Err(status) => assert!(Instant::now() < deadline, "{command:?} {status:?}"),
            }
            if !has_key {
                // Another attempt is another command.
                journal.add(command.clone());
                command.invoked = now();
                command.occurred = journal.mark();
            } else if may_give_up && random.below(4) == 0 {
                journal.add(command);
                return;
            }
        };
        command.answered = now();
        let is_stored = match &command.outcome {
            Outcome::Refused { reason, .. } => STORED.contains(&&**reason),
            _ => has_key,
        };
        if is_stored && random.below(REPEATING) == 0 {
            let repeated = self.attempt(journal, random, &mut command).await;
            command.repeated = repeated.ok();
        }
        journal.add(command);
    }

    /// Sends a command once; fails if the answer was lost.
    async fn attempt(
        &self,
        journal: &Journal,
        random: &mut Random,
        command: &mut Command,
    ) -> Result<Outcome, Status> {
        if let Some(sent) = &mut command.sent {
            sent.push(now());
        }
        let core = usize::try_from(random.below(2)).unwrap();
        match Box::pin(self.send(core, command)).await {
            Ok(answer) => {
                let mut etags = journal.etags.lock().unwrap();
                answer.lists.iter().for_each(|list| etags.add(list));
                Ok(answer.outcome)
            }
            Err(status) if !is_lost(&status) => Ok(refused(&status)),
            Err(status) => {
                journal.lost.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
                Err(status)
            }
        }
    }

    async fn send(&self, core: usize, command: &Command) -> Result<Answer, Status> {
        let (name, notes) = (command.task.clone(), command.key.clone());
        let (idempotency, report) = (idempotency(&command.key), report(command));
        let task = match &command.kind {
            Kind::Start => {
                let request = StartTaskRequest {
                    name,
                    idempotency,
                    report,
                };
                self.start_task(core, request).await?
            }
            Kind::Complete => {
                let request = CompleteTaskRequest {
                    name,
                    idempotency,
                    report,
                    notes,
                    ..Default::default()
                };
                self.complete_task(core, request).await?
            }
            Kind::Fail => {
                let request = FailTaskRequest {
                    name,
                    reason: "REFUSED".to_owned(),
                    idempotency,
                    report,
                    notes,
                };
                self.fail_task(core, request).await?
            }
            Kind::Reopen => {
                let request = ReopenTaskRequest {
                    name,
                    idempotency,
                    report,
                };
                self.reopen_task(core, request).await?
            }
            Kind::Reschedule {
                window: [after, before],
                both,
            } => {
                let request = RescheduleTaskRequest {
                    name,
                    after: timestamp(*after),
                    before: timestamp(*before),
                    both: *both,
                    time_slot: None,
                    idempotency,
                    report,
                };
                self.reschedule_task(core, request).await?
            }
            _ => return self.send_other(core, command).await,
        };
        Ok(Answer {
            outcome: Outcome::Done(Some((task.state(), micros(task.state_time)))),
            lists: Vec::new(),
        })
    }

    /// What does not change the state of one task.
    async fn send_other(&self, core: usize, command: &Command) -> Result<Answer, Status> {
        let (task, notes) = (command.task.clone(), command.key.clone());
        let (idempotency, report) = (idempotency(&command.key), report(command));
        let (mut outcome, mut lists) = (Outcome::Done(None), Vec::new());
        match &command.kind {
            Kind::Cancel(name) => {
                let name = name.clone();
                let request = CancelDeliveryRequest { name, report };
                self.cancel_delivery(core, request).await?;
            }
            Kind::Report => {
                let request = ReportIncidentRequest {
                    task,
                    description: notes,
                    report,
                    idempotency,
                    ..Default::default()
                };
                self.report_incident(core, request).await?;
            }
            Kind::Close(name) => {
                let request = CloseIncidentRequest {
                    name: name.clone(),
                    closed_with: notes,
                    idempotency,
                };
                self.close_incident(core, request).await?;
            }
            Kind::Assign { from, single } => {
                let target = command.tasks[&task].clone();
                let named = Move {
                    task,
                    expected_courier: Some(from.clone()),
                };
                let request = AssignTasksRequest {
                    moves: vec![named],
                    courier: target
                        .as_ref()
                        .map(|list| list.courier.clone())
                        .unwrap_or_default(),
                    day: target.map(|list| list.day).unwrap_or_default(),
                    single: *single,
                    idempotency,
                    ..Default::default()
                };
                let assigned = self.assign_tasks(core, request).await?;
                lists.extend(assigned.lists.into_iter().filter_map(|list| list.list));
                if !assigned.conflicts.is_empty() {
                    let (reason, message) = ("CONFLICT".to_owned(), String::new());
                    outcome = Outcome::Refused { reason, message };
                }
            }
            Kind::Set { day, lists: wanted } => {
                let request = SetCourierListsRequest {
                    day: day.clone(),
                    lists: wanted.clone(),
                    idempotency,
                };
                lists = self.set_courier_lists(core, request).await?.lists;
            }
            other => unreachable!("{other:?}"),
        }
        Ok(Answer { outcome, lists })
    }
}

/// Repeats a call that may be executed several times until it succeeds.
pub(super) async fn until_answered<T, R>(call: impl Fn(usize) -> R) -> T
where
    R: Future<Output = Result<T, Status>>,
{
    let deadline = Instant::now() + TIMEOUT;
    let mut core = 0;
    loop {
        match call(core).await {
            Ok(answer) => return answer,
            Err(status) => {
                let may_succeed = is_lost(&status) && Instant::now() < deadline;
                assert!(may_succeed, "{status:?}");
            }
        }
        tokio::time::sleep(PAUSE).await;
        core += 1;
    }
}

/// Whether the call may have been executed, or may be if it is repeated. A status of core itself has details.
pub(super) fn is_lost(status: &Status) -> bool {
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

pub(super) fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.map(|info| info.reason).unwrap_or_default()
}

fn refused(status: &Status) -> Outcome {
    Outcome::Refused {
        reason: reason(status),
        message: status.message().to_owned(),
    }
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
    let sent = command.sent.as_ref().and_then(|sent| sent.last());
    Some(Report {
        occurred_time: timestamp(command.occurred + command.skew),
        sent_time: sent.and_then(|sent| timestamp(sent + command.skew)),
    })
}
