//! `/api/tasks/{id}/incidents`: what went wrong with a task.

use std::collections::BTreeMap;

use proto::{
    ListIncidentsRequest,
    incidents_client::IncidentsClient,
    iri::{self, Collection},
};
use serde::Serialize;

use crate::{
    core_pool::rpc,
    error::Error,
    representation::{
        collection::{self, Pagination},
        json_ld::{self, Node, StoreTimeZone},
    },
    request::{HandlerResult, Request},
};

/// An incident, in a list or as a resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Incident {
    #[serde(flatten)]
    node: Node,
    task: String,
    description: Option<String>,
    failure_reason_code: Option<String>,
    created_at: String,
    occurred_at: String,
    /// Null while it is open.
    closed_at: Option<String>,
    /// Not for shops.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

/// `GET /api/tasks/{id}/incidents`: newest first, paginated.
pub(crate) async fn list(mut request: Request) -> HandlerResult {
    let page_size = collection::read_page_size(&mut request);
    let cursor = collection::read_single(&mut request, "page_token", "cursor").unwrap_or_default();

    let task = Collection::Tasks.name(&request.parameter);
    let message = ListIncidentsRequest {
        task: task.clone(),
        open_only: false,
        page_size,
        page_token: cursor.clone(),
        violations: request.violations.to_proto(),
    };
    let page = request
        .call(message, rpc!(IncidentsClient.list_incidents))
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
    let incidents = page.incidents.into_iter();
    let incidents = incidents.map(|incident| Incident::of(incident, &zone));
    let page = collection::Collection::page(
        format!("{}/incidents", iri::of(&task)),
        incidents.collect::<Result<_, _>>()?,
        &pagination,
    );
    json_ld::ok("/api/contexts/Incident", &page)
}

impl Incident {
    pub(super) fn of(incident: proto::Incident, zone: &StoreTimeZone) -> Result<Self, Error> {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        Ok(Self {
            node: Node::new("Incident", Collection::Incidents, &incident.name),
            task: iri::of(&incident.task),
            description: given(incident.description),
            failure_reason_code: given(incident.failure_reason),
            created_at: zone.write(incident.create_time.as_ref())?,
            occurred_at: zone.write(incident.occurred_time.as_ref())?,
            closed_at: zone.write_optional(incident.close_time.as_ref())?,
            metadata: incident.metadata.into_iter().collect(),
        })
    }
}
