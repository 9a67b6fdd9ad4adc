//! `PUT /api/tasks/{id}/…`, `PUT /api/tasks/done` and `PATCH /api/tasks/{id}`: what couriers and dispatch do with tasks.

use std::collections::BTreeMap;

use prost_types::FieldMask;
use proto::{
    Address, CompleteTaskRequest, CompleteTasksRequest, FailTaskRequest, ReopenTaskRequest, Report,
    RescheduleTaskRequest, StartTaskRequest, UpdateTaskRequest,
    iri::{self, Collection},
    limits::MAX_BATCH,
    tasks_client::TasksClient,
};
use serde::Serialize;
use serde_json::Value;

use super::tasks::{Task, TaskView, show};
use crate::{
    body_reader::Object,
    core_pool::rpc,
    representation::json_ld,
    request::{HandlerResult, Request},
    violations::ViolationCollector,
};

/// Several completed tasks.
#[derive(Serialize)]
#[serde(tag = "@type")]
struct TaskBatch {
    success: Vec<Task>,
    /// Why the others are not completed, by what the request calls them.
    failed: BTreeMap<String, String>,
}

// Without a key, too, each of these can be repeated: a task that is as requested stays unchanged.

/// `PUT /api/tasks/{id}/start`
pub(crate) async fn start(mut request: Request) -> HandlerResult {
    let body = Object::root(&request.json);
    let message = StartTaskRequest {
        name: Collection::Tasks.name(&request.parameter),
        report: read_report(&body, &mut request.violations),
        violations: request.violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let started = request.send(message, true, rpc!(TasksClient.start_task));
    show(started.await?)
}

/// `PUT /api/tasks/{id}/done`
pub(crate) async fn complete(mut request: Request) -> HandlerResult {
    let body = Object::root(&request.json);
    let violations = &mut request.violations;
    let message = CompleteTaskRequest {
        name: Collection::Tasks.name(&request.parameter),
        report: read_report(&body, violations),
        notes: read_text(&body, "notes", violations),
        contact_name: read_contact_name(&body, violations),
        violations: violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let completed = request.send(message, true, rpc!(TasksClient.complete_task));
    show(completed.await?)
}

/// `PUT /api/tasks/done`
pub(crate) async fn complete_several(mut request: Request) -> HandlerResult {
    let body = Object::root(&request.json);
    let violations = &mut request.violations;
    let tasks = read_tasks(&body, violations);
    let names = tasks.iter().map(|task| iri::name(task).to_owned());
    let message = CompleteTasksRequest {
        tasks: names.collect(),
        report: read_report(&body, violations),
        notes: read_text(&body, "notes", violations),
        contact_name: read_contact_name(&body, violations),
        violations: violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let completed = request.send(message, true, rpc!(TasksClient.complete_tasks));
    let completed = completed.await?;

    let view = TaskView::of(&completed);
    let completed = completed.into_inner();
    let success = completed.tasks.into_iter().map(|task| Task::of(task, view));
    let mut failed = completed.failed;
    let failed = tasks.into_iter().filter_map(|task| {
        let reason = failed.remove(iri::name(&task))?;
        Some((task, reason))
    });
    let batch = TaskBatch {
        failed: failed.collect(),
        success: success.collect::<Result<_, _>>()?,
    };
    json_ld::ok("/api/contexts/TaskBatch", &batch)
}

/// `PUT /api/tasks/{id}/failed`
pub(crate) async fn fail(mut request: Request) -> HandlerResult {
    let body = Object::root(&request.json);
    let violations = &mut request.violations;
    let message = FailTaskRequest {
        name: Collection::Tasks.name(&request.parameter),
        reason: read_text(&body, "reason", violations),
        report: read_report(&body, violations),
        notes: read_text(&body, "notes", violations),
        violations: violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let failed = request.send(message, true, rpc!(TasksClient.fail_task));
    show(failed.await?)
}

/// `PUT /api/tasks/{id}/reopen`
pub(crate) async fn reopen(mut request: Request) -> HandlerResult {
    let body = Object::root(&request.json);
    let message = ReopenTaskRequest {
        name: Collection::Tasks.name(&request.parameter),
        report: read_report(&body, &mut request.violations),
        violations: request.violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let reopened = request.send(message, true, rpc!(TasksClient.reopen_task));
    show(reopened.await?)
}

/// `PUT /api/tasks/{id}/reschedule`
pub(crate) async fn reschedule(mut request: Request) -> HandlerResult {
    let body = Object::root(&request.json);
    let violations = &mut request.violations;
    let both = body.get("both");
    if let Some(other) = both.filter(|both| !both.is_boolean()) {
        violations.add_wrong_type("both", "a boolean", other);
    }
    if body.get("timeSlot").is_some() && body.get("before").is_none() {
        // What core says of the window's end is about it.
        violations.add_alias("before".to_owned(), "timeSlot");
    }
    let message = RescheduleTaskRequest {
        name: Collection::Tasks.name(&request.parameter),
        after: body.instant("after", violations),
        before: body.instant("before", violations),
        both: both.and_then(Value::as_bool).unwrap_or_default(),
        time_slot: body.text("timeSlot", "time_slot", violations),
        report: read_report(&body, violations),
        violations: violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let rescheduled = request.send(message, true, rpc!(TasksClient.reschedule_task));
    show(rescheduled.await?)
}

/// `PATCH /api/tasks/{id}`
pub(crate) async fn update(mut request: Request) -> HandlerResult {
    let body = Object::root(&request.json);
    let violations = &mut request.violations;
    let fields = [
        ("comments", "comments"),
        ("telephone", "address.telephone"),
        ("description", "address.description"),
    ];
    let given = fields.iter().filter(|(member, _)| body.has(member));
    let paths: Vec<_> = given.map(|(_, field)| (*field).to_owned()).collect();
    if paths.is_empty() {
        violations.add(
            "",
            "REQUIRED",
            "must have comments, telephone or description",
        );
    }
    // Their members are members of the body.
    for field in ["task", "task.address"] {
        violations.add_alias(field.to_owned(), "");
    }
    let address = Address {
        telephone: body.text("telephone", "telephone", violations),
        description: body.text("description", "description", violations),
        ..Address::default()
    };
    let task = proto::Task {
        name: Collection::Tasks.name(&request.parameter),
        comments: read_text(&body, "comments", violations),
        address: Some(address),
        ..proto::Task::default()
    };
    let message = UpdateTaskRequest {
        task: Some(task),
        update_mask: Some(FieldMask { paths }),
        report: Some(read_times(&body, violations)),
        violations: violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    let updated = request.send(message, true, rpc!(TasksClient.update_task));
    show(updated.await?)
}

/// When the device says that it happened and that it sent the request, and the courier for whom dispatch reports.
pub(super) fn read_report(
    body: &Object<'_>,
    violations: &mut ViolationCollector,
) -> Option<Report> {
    // Its members are members of the body.
    violations.add_alias("report".to_owned(), "");
    let on_behalf_of = body.text("onBehalfOf", "on_behalf_of", violations);
    let report = Report {
        on_behalf_of: on_behalf_of.map_or_else(String::new, |iri| iri::name(iri.trim()).to_owned()),
        ..read_times(body, violations)
    };
    Some(report).filter(|report| *report != Report::default())
}

fn read_times(body: &Object<'_>, violations: &mut ViolationCollector) -> Report {
    Report {
        occurred_time: body.instant("occurredAt", violations),
        sent_time: body.instant("sentAt", violations),
        on_behalf_of: String::new(),
    }
}

/// Reads a member whose field has the same name; empty if it is absent.
fn read_text(body: &Object<'_>, member: &str, violations: &mut ViolationCollector) -> String {
    body.text(member, member, violations).unwrap_or_default()
}

fn read_contact_name(body: &Object<'_>, violations: &mut ViolationCollector) -> String {
    let name = body.text("contactName", "contact_name", violations);
    name.unwrap_or_default()
}

/// Keeps what is no text as an empty one, so that the list is not taken for an empty one. Counts first: a body has
/// room for half a million.
fn read_tasks(body: &Object<'_>, violations: &mut ViolationCollector) -> Vec<String> {
    let elements = body.array("tasks", "tasks", violations);
    let count = elements.len();
    if count > MAX_BATCH {
        let message = format!("must be at most {MAX_BATCH} tasks, not {count}");
        violations.add("tasks", "TOO_MANY", message);
        return Vec::new();
    }
    let tasks = elements.iter().enumerate().map(|(index, element)| {
        if !element.is_string() {
            violations.add_wrong_type(format!("tasks[{index}]"), "a string", element);
        }
        element.as_str().unwrap_or_default().to_owned()
    });
    tasks.collect()
}
