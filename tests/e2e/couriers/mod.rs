//! Couriers and their lists over gRPC: who has which task, on which day, in which order.

mod assigning;
mod by_list;
mod commands;
mod conflicts;
mod correcting;
mod days;
mod effects;
mod history;
mod images;
mod incidents;
mod late;
mod listing;
mod lists;
mod order;
mod phone;
mod races;
mod reading;
mod refusals;
mod register;
mod repeating;
mod rest;
mod watching;
mod watching_lists;
mod watching_long;

use delivery::Credentials;
use proto::{
    AssignTasksRequest, AssignTasksResponse, CloseIncidentRequest, CompleteTaskRequest,
    CompleteTasksRequest, CompleteTasksResponse, Courier, CourierList, CreateCourierRequest,
    FailTaskRequest, GetCourierRequest, GetCurrentApiClientRequest, GetTaskRequest, Incident,
    ListCourierListsRequest, ListCourierListsResponse, ListCouriersRequest, ListCouriersResponse,
    ListIncidentsRequest, ListIncidentsResponse, ListTaskEventsRequest, ListTaskEventsResponse,
    ListTasksRequest, ListTasksResponse, ReopenTaskRequest, ReportIncidentRequest,
    RescheduleTaskRequest, SetCourierListsRequest, SetCourierListsResponse, StartTaskRequest, Task,
    UpdateCourierRequest, UpdateTaskRequest, WatchTasksRequest, WatchTasksResponse,
    api_clients_client::ApiClientsClient, assign_tasks_request::Move,
    couriers_client::CouriersClient, images_client::ImagesClient,
    incidents_client::IncidentsClient, tasks_client::TasksClient,
};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

use self::order::{Order, orders};
use crate::harness::{Platform, grpc};

/// The day on which every platform starts, and the next one.
const TODAY: &str = "2020-04-02";
const TOMORROW: &str = "2020-04-03";

type TaskChanges = Streaming<WatchTasksResponse>;

/// A program that dispatches, or another client of core.
#[derive(Clone)]
struct Desk {
    couriers: CouriersClient<Channel>,
    tasks: TasksClient<Channel>,
    incidents: IncidentsClient<Channel>,
    images: ImagesClient<Channel>,
    token: String,
    /// `api_apps/<id>`.
    api_client: String,
}

macro_rules! calls {
    ($($service:ident.$rpc:ident($request:ident) -> $response:ident;)+) => {
        impl Desk {$(
            async fn $rpc(&self, request: $request) -> Result<$response, Status> {
                let request = grpc::with_token(&self.token, request);
                Ok(self.$service.clone().$rpc(request).await?.into_inner())
            }
        )+}
    };
}

calls! {
    couriers.create_courier(CreateCourierRequest) -> Courier;
    couriers.get_courier(GetCourierRequest) -> Courier;
    couriers.list_couriers(ListCouriersRequest) -> ListCouriersResponse;
    couriers.update_courier(UpdateCourierRequest) -> Courier;
    couriers.list_courier_lists(ListCourierListsRequest) -> ListCourierListsResponse;
    couriers.set_courier_lists(SetCourierListsRequest) -> SetCourierListsResponse;
    couriers.assign_tasks(AssignTasksRequest) -> AssignTasksResponse;
    tasks.get_task(GetTaskRequest) -> Task;
    tasks.list_tasks(ListTasksRequest) -> ListTasksResponse;
    tasks.list_task_events(ListTaskEventsRequest) -> ListTaskEventsResponse;
    tasks.start_task(StartTaskRequest) -> Task;
    tasks.complete_task(CompleteTaskRequest) -> Task;
    tasks.complete_tasks(CompleteTasksRequest) -> CompleteTasksResponse;
    tasks.fail_task(FailTaskRequest) -> Task;
    tasks.reopen_task(ReopenTaskRequest) -> Task;
    tasks.reschedule_task(RescheduleTaskRequest) -> Task;
    tasks.update_task(UpdateTaskRequest) -> Task;
    tasks.watch_tasks(WatchTasksRequest) -> TaskChanges;
    incidents.report_incident(ReportIncidentRequest) -> Incident;
    incidents.list_incidents(ListIncidentsRequest) -> ListIncidentsResponse;
    incidents.close_incident(CloseIncidentRequest) -> Incident;
}

impl Desk {
    async fn authorized(platform: &Platform) -> Self {
        let operator = platform.operator().await;
        let credentials = operator.create_client("", &["dispatch"]).await;
        Self::with(platform, &credentials, "dispatch").await
    }

    async fn with(platform: &Platform, credentials: &Credentials, scope: &str) -> Self {
        let (channel, token) = grpc::connect(&platform.core_url, credentials, &[scope]).await;
        let request = grpc::with_token(&token, GetCurrentApiClientRequest {});
        let mut clients = ApiClientsClient::new(channel.clone());
        let client = clients.get_current_api_client(request).await.unwrap();
        Self {
            couriers: CouriersClient::new(channel.clone()),
            tasks: TasksClient::new(channel.clone()),
            incidents: IncidentsClient::new(channel.clone()),
            images: ImagesClient::new(channel),
            token,
            api_client: client.into_inner().name,
        }
    }

    /// The name of a new courier.
    async fn courier(&self, display_name: &str) -> String {
        let request = CreateCourierRequest {
            display_name: display_name.to_owned(),
            ..Default::default()
        };
        self.create_courier(request).await.unwrap().name
    }

    async fn disable(&self, courier: &str, disabled: bool) -> Courier {
        let request = UpdateCourierRequest {
            name: courier.to_owned(),
            disabled: Some(disabled),
            ..Default::default()
        };
        self.update_courier(request).await.unwrap()
    }

    /// Moves tasks with the other ones of their deliveries, and returns the conflicts.
    async fn assign(
        &self,
        tasks: &[impl AsRef<str>],
        expected: &str,
        courier: &str,
    ) -> Vec<String> {
        let request = assignment(tasks, expected, courier);
        self.assign_tasks(request).await.unwrap().conflicts
    }

    /// Without the position, which any change moves.
    async fn lists(&self, day: &str) -> ListCourierListsResponse {
        let day = day.to_owned();
        let request = ListCourierListsRequest { day };
        let lists = self.list_courier_lists(request).await.unwrap();
        ListCourierListsResponse {
            position: 0,
            ..lists
        }
    }

    /// The list of a courier, also one without tasks.
    async fn list(&self, day: &str, courier: &str) -> CourierList {
        list_of(&self.lists(day).await, courier)
    }

    /// The tasks in the list of a courier. Fails unless each says that it is there, in this order.
    async fn tasks_of(&self, day: &str, courier: &str) -> Vec<String> {
        let tasks = self.list(day, courier).await.tasks;
        let mut previous = None;
        for task in &tasks {
            let found = self.place(task).await;
            let position = found.position;
            assert_eq!(found, place(courier, day, position));
            assert!(previous < Some(position), "{previous:?} {position}");
            previous = Some(position);
        }
        tasks
    }

    async fn set(&self, day: &str, lists: Vec<CourierList>) -> Result<Vec<CourierList>, Status> {
        let request = SetCourierListsRequest {
            day: day.to_owned(),
            lists,
            idempotency: None,
        };
        Ok(self.set_courier_lists(request).await?.lists)
    }

    async fn task(&self, name: &str) -> Task {
        let name = name.to_owned();
        self.get_task(GetTaskRequest { name }).await.unwrap()
    }

    async fn place(&self, task: &str) -> Place {
        let task = self.task(task).await;
        place(&task.courier, &task.list_day, task.list_position)
    }

    async fn start(&self, task: &str) -> Task {
        let request = StartTaskRequest {
            name: task.to_owned(),
            ..Default::default()
        };
        self.start_task(request).await.unwrap()
    }

    async fn complete(&self, task: &str) -> Task {
        let request = CompleteTaskRequest {
            name: task.to_owned(),
            ..Default::default()
        };
        self.complete_task(request).await.unwrap()
    }

    async fn fail(&self, task: &str) -> Task {
        let request = FailTaskRequest {
            name: task.to_owned(),
            reason: "OTHER".to_owned(),
            ..Default::default()
        };
        self.fail_task(request).await.unwrap()
    }

    /// Gives a task another window, and with `both` also the other task of its delivery.
    async fn reschedule(&self, task: &str, time_slot: &str, both: bool) -> Result<Task, Status> {
        let request = RescheduleTaskRequest {
            name: task.to_owned(),
            time_slot: Some(time_slot.to_owned()),
            both,
            ..Default::default()
        };
        self.reschedule_task(request).await
    }

    /// The stream of what changes in a list, which is left out of the request if it has no field.
    async fn watch(
        &self,
        after_position: Option<i64>,
        list: &ListTasksRequest,
    ) -> Result<TaskChanges, Status> {
        let has_fields = *list != ListTasksRequest::default();
        let request = WatchTasksRequest {
            after_position,
            list: has_fields.then(|| list.clone()),
        };
        self.watch_tasks(request).await
    }

    /// Everything that this client sees of a task's history.
    async fn history(&self, task: &str) -> Vec<proto::TaskEvent> {
        let request = ListTaskEventsRequest {
            task: task.to_owned(),
            ..Default::default()
        };
        self.list_task_events(request).await.unwrap().events
    }
}

/// Where a task is; all empty without a courier.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    courier: String,
    day: String,
    position: u32,
}

fn place(courier: &str, day: &str, position: u32) -> Place {
    Place {
        courier: courier.to_owned(),
        day: day.to_owned(),
        position,
    }
}

/// The tasks of deliveries, pickups first.
fn tasks(orders: &[&Order]) -> Vec<String> {
    let tasks = orders
        .iter()
        .map(|order| [order.pickup.clone(), order.dropoff.clone()]);
    tasks.flatten().collect()
}

fn assignment(tasks: &[impl AsRef<str>], expected: &str, courier: &str) -> AssignTasksRequest {
    let moves = tasks.iter().map(|task| Move {
        task: task.as_ref().to_owned(),
        expected_courier: Some(expected.to_owned()),
    });
    AssignTasksRequest {
        moves: moves.collect(),
        courier: courier.to_owned(),
        ..Default::default()
    }
}

/// The list of a courier, also one without tasks.
fn list_of(found: &ListCourierListsResponse, courier: &str) -> CourierList {
    let mut lists = found.lists.iter();
    let list = lists.find(|list| list.courier == courier).cloned();
    list.unwrap_or_else(|| CourierList {
        courier: courier.to_owned(),
        etag: found.empty_etag.clone(),
        ..Default::default()
    })
}

/// A list as it was read, with the tasks that it shall have.
fn with_tasks(list: &CourierList, tasks: &[String]) -> CourierList {
    CourierList {
        tasks: tasks.to_vec(),
        ..list.clone()
    }
}

/// The tasks of a day, without a filter.
fn on(day: &str) -> ListTasksRequest {
    ListTasksRequest {
        day: day.to_owned(),
        ..Default::default()
    }
}

/// The current time.
#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
fn now(platform: &Platform) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp {
        seconds: platform.now().as_second(),
        nanos: 0,
    })
}

#[track_caller]
fn assert_refused(refused: &Status, reason: &str) {
    let found = refused.get_details_error_info().map(|info| info.reason);
    assert_eq!(
        (refused.code(), found.as_deref()),
        (Code::FailedPrecondition, Some(reason)),
        "{refused:?}"
    );
}

#[track_caller]
fn assert_unknown(refused: &Status, name: &str) {
    assert_eq!(
        (refused.code(), refused.message()),
        (Code::NotFound, &*format!("{name} does not exist"))
    );
}

/// Fails unless there are violations in exactly these fields, or in parts of them.
#[track_caller]
fn assert_violations(refused: &Status, fields: &[&str]) {
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    let violations = refused.get_details_bad_request().unwrap().field_violations;
    let whole = |field: &str| field.split(['.', '[']).next().unwrap().to_owned();
    let mut found: Vec<_> = violations.iter().map(|found| whole(&found.field)).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, fields, "{violations:?}");
}
