//! `POST /api/incidents`: reports what went wrong with a task.

use std::collections::HashMap;

use proto::{
    GetTaskRequest, ReportIncidentRequest, incidents_client::IncidentsClient, iri,
    tasks_client::TasksClient,
};
use serde_json::Value;

use super::{task_commands::read_report, task_incidents::Incident};
use crate::{
    body_reader::Object,
    core_pool::rpc,
    representation::json_ld::{self, StoreTimeZone},
    request::{self, HandlerResult, Request},
    violations::ViolationCollector,
};

/// `POST /api/incidents`
pub(crate) async fn report(mut request: Request) -> HandlerResult {
    let violations = &mut request.violations;
    violations.add_alias("failure_reason".to_owned(), "failureReasonCode");
    let body = Object::root(&request.json);
    let task = body.text("task", "task", violations).unwrap_or_default();
    if task.trim().is_empty() {
        violations.add("task", "REQUIRED", "is required");
    }
    let description = body.text("description", "description", violations);
    let failure_reason = body.text("failureReasonCode", "failure_reason", violations);
    let message = ReportIncidentRequest {
        task: iri::name(task.trim()).to_owned(),
        description: description.unwrap_or_default(),
        failure_reason: failure_reason.unwrap_or_default(),
        metadata: read_metadata(&body, violations),
        report: read_report(&body, violations),
        violations: violations.to_proto(),
        idempotency: request.idempotency.clone(),
    };
    // Without a key, too: a report that repeats an open incident returns that one.
    let report = request.send(message, true, rpc!(IncidentsClient.report_incident));
    let reported = report.await?;

    let name = reported.get_ref().task.clone();
    let task = request.call(GetTaskRequest { name }, rpc!(TasksClient.get_task));
    // The incident is stored, although the task may be another courier's by now.
    let zone = match task.await {
        Ok(task) => task.time_zone,
        Err(_) => request.gateway.platform.timezone.clone(),
    };
    let zone = StoreTimeZone::named(&zone);
    request::respond(reported, |incident| {
        json_ld::ok("/api/contexts/Incident", &Incident::of(incident, &zone)?)
    })
}

/// Reads an object or an array. The elements of an array have their positions as keys, and the members of objects in it
/// their positions and names: `0.shelf`.
fn read_metadata(
    body: &Object<'_>,
    violations: &mut ViolationCollector,
) -> HashMap<String, String> {
    let members: Vec<(String, &Value)> = match body.get("metadata") {
        None => Vec::new(),
        Some(Value::Object(members)) => {
            let members = members.iter().map(|(name, value)| (name.clone(), value));
            members.collect()
        }
        Some(Value::Array(elements)) => {
            let members = elements.iter().enumerate().flat_map(|(index, element)| {
                let Value::Object(members) = element else {
                    return vec![(index.to_string(), element)];
                };
                let members = members.iter();
                let members = members.map(|(name, value)| (format!("{index}.{name}"), value));
                members.collect()
            });
            members.collect()
        }
        Some(other) => {
            violations.add_wrong_type("metadata", "an object or an array", other);
            Vec::new()
        }
    };
    let mut texts = HashMap::new();
    for (key, value) in members {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                violations.add_wrong_type(format!("metadata.{key}"), "a string", value);
                continue;
            }
        };
        texts.insert(key, text);
    }
    texts
}
