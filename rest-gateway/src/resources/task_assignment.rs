//! `PUT /api/tasks/{id}/assign` and `…/unassign`: who brings the delivery of a task. The tasks of a delivery move together.

use proto::{
    AssignTasksRequest, GetTaskRequest,
    assign_tasks_request::Move,
    couriers_client::CouriersClient,
    iri::{self, Collection},
    task::State,
    tasks_client::TasksClient,
};

use super::tasks::{self, Task, TaskView};
use crate::{
    body_reader::Object,
    core_pool::rpc,
    error::Error,
    representation::{error_codes as codes, json_ld},
    request::{self, HandlerResult, Request},
};

/// `PUT /api/tasks/{id}/assign`: `username` is the name or the IRI of a courier, or a display name.
pub(crate) async fn assign(mut request: Request) -> HandlerResult {
    let violations = &mut request.violations;
    for field in ["courier", "courier_display_name"] {
        violations.add_alias(field.to_owned(), "username");
    }
    let username = Object::root(&request.json).text("username", "courier", violations);
    let username = username.unwrap_or_default();
    if username.trim().is_empty() {
        violations.add("courier", "REQUIRED", "is required");
    }
    let name = iri::name(username.trim());
    let receiver = if Collection::Couriers.last_segment(name).is_some() {
        AssignTasksRequest {
            courier: name.to_owned(),
            ..AssignTasksRequest::default()
        }
    } else {
        AssignTasksRequest {
            courier_display_name: username,
            ..AssignTasksRequest::default()
        }
    };
    move_to(receiver, request).await
}

/// `PUT /api/tasks/{id}/unassign`
pub(crate) async fn unassign(request: Request) -> HandlerResult {
    move_to(AssignTasksRequest::default(), request).await
}

async fn move_to(receiver: AssignTasksRequest, request: Request) -> HandlerResult {
    let name = Collection::Tasks.name(&request.parameter);
    let message = AssignTasksRequest {
        moves: vec![Move {
            task: name.clone(),
            expected_courier: None,
        }],
        violations: request.violations.to_proto(),
        idempotency: request.idempotency.clone(),
        ..receiver
    };
    // Without a key, too, it can be repeated.
    let assign = request.send(message, true, rpc!(CouriersClient.assign_tasks));
    let assigned = assign.await?;
    let get = request.send(GetTaskRequest { name }, true, rpc!(TasksClient.get_task));
    let task = get.await?;

    let view = TaskView::of(&task);
    let task = task.into_inner();
    if !assigned.get_ref().conflicts.is_empty() {
        return Err(refused(&task));
    }
    request::respond(assigned, |_| {
        json_ld::ok(tasks::CONTEXT, &Task::of(task, view)?)
    })
}

/// Why core has left a task where it was.
fn refused(task: &proto::Task) -> Error {
    let state = tasks::state(task);
    match task.state() {
        State::Done | State::Failed | State::Cancelled => {
            let message = format!("the task is {state}, and keeps its place");
            Error::new(&codes::TASK_STATE, message)
        }
        State::Unspecified | State::Todo | State::Doing => {
            let message = "the task was moved meanwhile; read it, and repeat the request";
            Error::new(&codes::CONFLICT, message)
        }
    }
}
