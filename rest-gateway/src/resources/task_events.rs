//! `/api/tasks/{id}/events`: the history of a task.

use std::collections::BTreeMap;

use proto::{
    ListTaskEventsRequest,
    iri::{self, Collection},
    tasks_client::TasksClient,
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::{
        collection::{self, Pagination},
        json_ld::{self, StoreTimeZone},
    },
    request::{HandlerResult, Request},
};

#[derive(Debug, Serialize)]
#[serde(tag = "@type", rename_all = "camelCase")]
struct TaskEvent {
    name: String,
    /// Without the members that the event does not have.
    data: BTreeMap<&'static str, String>,
    created_at: String,
    occurred_at: String,
}

/// `GET /api/tasks/{id}/events`: oldest first, paginated.
pub(crate) async fn list(mut request: Request) -> HandlerResult {
    let page_size = collection::read_page_size(&mut request);
    let cursor = collection::read_single(&mut request, "page_token", "cursor").unwrap_or_default();

    let task = Collection::Tasks.name(&request.parameter);
    let message = ListTaskEventsRequest {
        task: task.clone(),
        page_size,
        page_token: cursor.clone(),
        violations: request.violations.to_proto(),
    };
    let page = request
        .call(message, rpc!(TasksClient.list_task_events))
        .await?;

    let pagination = Pagination {
        operation: request.operation,
        parameter: "cursor",
        query: page_size.map_or_else(String::new, |size| format!("itemsPerPage={size}")),
        cursor,
        previous: String::new(),
        next: page.next_page_token,
    };
    let zone = StoreTimeZone::named(&page.time_zone);
    let events = page.events.into_iter().map(|event| read(event, &zone));
    let page = collection::Collection::page(
        format!("{}/events", iri::of(&task)),
        events.collect::<Result<_, _>>()?,
        &pagination,
    );
    json_ld::ok("/api/contexts/TaskEvent", &page)
}

fn read(event: proto::TaskEvent, zone: &StoreTimeZone) -> Result<TaskEvent, Error> {
    let mut data = BTreeMap::new();
    for (member, text) in [
        ("reason", event.failure_reason),
        ("contactName", event.contact_name),
    ] {
        if !text.is_empty() {
            data.insert(member, text);
        }
    }
    for (member, instant) in [
        ("after", event.after),
        ("before", event.before),
        ("previousAfter", event.previous_after),
        ("previousBefore", event.previous_before),
    ] {
        if let Some(instant) = zone.write_optional(instant.as_ref())? {
            data.insert(member, instant);
        }
    }
    Ok(TaskEvent {
        name: event.event,
        data,
        created_at: zone.write(event.create_time.as_ref())?,
        occurred_at: zone.write(event.occurred_time.as_ref())?,
    })
}
