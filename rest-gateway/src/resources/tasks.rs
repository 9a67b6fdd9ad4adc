//! `GET /api/tasks/{id}`, the task in other responses, and the address in tasks and stores.

use std::collections::BTreeMap;

use proto::{
    GetTaskRequest, Package,
    iri::{self, Collection},
    task::{Kind, State, Status},
    tasks_client::TasksClient,
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::json_ld::{self, Node, StoreTimeZone},
    request::{self, HandlerResult, Request},
};

pub(super) const CONTEXT: &str = "/api/contexts/Task";

/// A task, as a resource or embedded in its delivery.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task {
    #[serde(flatten)]
    node: Node,
    r#type: &'static str,
    status: &'static str,
    state: &'static str,
    address: Address,
    after: String,
    before: String,
    /// The former name of `after`, which some clients read.
    done_after: String,
    /// The former name of `before`.
    done_before: String,
    comments: String,
    weight: Option<i64>,
    packages: Vec<Package>,
    tags: Vec<String>,
    metadata: BTreeMap<String, String>,
    /// Null in a preview, like `updated_at`.
    created_at: Option<String>,
    updated_at: Option<String>,
    cancelled_at: Option<String>,
    #[serde(flatten)]
    assignment: Option<Assignment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
}

/// What couriers and dispatch see of a task, and shops do not.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Assignment {
    is_assigned: bool,
    /// `couriers/<id>`
    assigned_to: Option<String>,
    has_incidents: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the terms are schema.org's")]
pub(super) struct Address {
    #[serde(flatten)]
    node: Node,
    geo: GeoCoordinates,
    street_address: String,
    telephone: Option<String>,
    name: Option<String>,
    contact_name: Option<String>,
    description: Option<String>,
    postal_code: Option<String>,
    address_locality: Option<String>,
    address_country: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "@type")]
struct GeoCoordinates {
    latitude: f64,
    longitude: f64,
}

/// `GET /api/tasks/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::Tasks.name(&request.parameter);
    let get = request.send(GetTaskRequest { name }, true, rpc!(TasksClient.get_task));
    show(get.await?)
}

/// The response with a task, which may be the stored one to a command.
pub(super) fn show(response: tonic::Response<proto::Task>) -> HandlerResult {
    let view = TaskView::of(&response);
    request::respond(response, |task| {
        json_ld::ok(CONTEXT, &Task::of(task, view)?)
    })
}

/// What a caller sees of tasks.
#[derive(Clone, Copy, Default)]
pub(super) struct TaskView {
    /// Whether the `status` is that of the state, and not only `TODO` or `DONE`.
    has_full_status: bool,
    has_couriers: bool,
}

impl TaskView {
    /// What core's response says of its caller.
    pub(super) fn of<T>(response: &tonic::Response<T>) -> Self {
        let metadata = response.metadata();
        Self {
            has_full_status: metadata.contains_key(proto::FULL_TASK_STATUS),
            has_couriers: metadata.contains_key(proto::SEES_COURIERS),
        }
    }
}

impl Task {
    pub(super) fn of(task: proto::Task, view: TaskView) -> Result<Self, Error> {
        let kind = match task.kind() {
            Kind::Pickup => "PICKUP",
            Kind::Dropoff => "DROPOFF",
            Kind::Unspecified => return Err(Error::incomplete("a task's kind")),
        };
        let status = match task.status() {
            Status::Todo => "TODO",
            Status::Done => "DONE",
            Status::Unspecified => return Err(Error::incomplete("a task's status")),
        };
        let state = state(&task);
        let zone = StoreTimeZone::named(&task.time_zone);
        let after = zone.write(task.after.as_ref())?;
        let before = zone.write(task.before.as_ref())?;
        Ok(Self {
            node: Node::new("Task", Collection::Tasks, &task.name),
            r#type: kind,
            status: if view.has_full_status { state } else { status },
            state,
            address: task
                .address
                .ok_or_else(|| Error::incomplete("a task's address"))?
                .try_into()?,
            done_after: after.clone(),
            done_before: before.clone(),
            after,
            before,
            comments: task.comments,
            weight: task.weight,
            packages: task.packages,
            tags: task.tags,
            metadata: task.metadata.into_iter().collect(),
            created_at: zone.write_optional(task.create_time.as_ref())?,
            updated_at: zone.write_optional(task.update_time.as_ref())?,
            cancelled_at: zone.write_optional(task.cancel_time.as_ref())?,
            assignment: view.has_couriers.then(|| Assignment {
                is_assigned: !task.courier.is_empty(),
                assigned_to: Some(task.courier).filter(|courier| !courier.is_empty()),
                has_incidents: task.has_incidents,
            }),
            images: task.images.iter().map(|name| iri::of(name)).collect(),
        })
    }
}

/// The word of a task's state. A core of an earlier version does not send the state.
pub(super) fn state(task: &proto::Task) -> &'static str {
    let state = match task.state() {
        State::Unspecified if task.status() == Status::Done => State::Done,
        State::Unspecified if task.cancel_time.is_some() => State::Cancelled,
        State::Unspecified => State::Todo,
        state => state,
    };
    state.as_str_name().trim_start_matches("STATE_")
}

impl TryFrom<proto::Address> for Address {
    type Error = Error;

    fn try_from(address: proto::Address) -> Result<Self, Error> {
        let lat_lng = address
            .lat_lng
            .ok_or_else(|| Error::incomplete("an address's location"))?;
        // A preview has no name.
        let iri = (!address.name.is_empty()).then(|| iri::of(&address.name));
        Ok(Self {
            node: Node::with_iri("http://schema.org/Place", iri),
            geo: GeoCoordinates {
                latitude: lat_lng.latitude,
                longitude: lat_lng.longitude,
            },
            street_address: address.street_address,
            telephone: address.telephone,
            name: address.place_name,
            contact_name: address.contact_name,
            description: address.description,
            postal_code: address.postal_code,
            address_locality: address.address_locality,
            address_country: address.address_country,
        })
    }
}
