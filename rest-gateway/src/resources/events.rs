//! `/api/events`

use proto::{
    GetEventRequest, ListEventsRequest,
    events_client::EventsClient,
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

const CONTEXT: &str = "/api/contexts/Event";

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    #[serde(flatten)]
    node: Node,
    number: i64,
    /// Named as in notifications, like `object`.
    #[serde(rename = "event")]
    name: String,
    object: String,
    created_at: String,
}

/// A page of the event log, with the first and last number of the log.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EventPage {
    #[serde(flatten)]
    collection: collection::Collection<Event>,
    first_number: i64,
    last_number: i64,
}

/// `GET /api/events`: oldest first, paginated.
pub(crate) async fn list(mut request: Request) -> HandlerResult {
    let page_size = collection::read_page_size(&mut request);
    let requirement = "must be 0 or the number of an event";
    let after = collection::read_parsed(&mut request, "after", "after", requirement, |text| {
        text.parse().ok()
    });

    let message = ListEventsRequest {
        store: String::new(),
        after,
        page_size,
        violations: request.violations.to_proto(),
    };
    let page = request
        .call(message, rpc!(EventsClient.list_events))
        .await?;

    let last = page.events.last().map_or(page.after, |event| event.number);
    let pagination = Pagination {
        operation: request.operation,
        parameter: "after",
        query: page_size.map_or_else(String::new, |size| format!("itemsPerPage={size}")),
        cursor: after.map(|after| after.to_string()).unwrap_or_default(),
        previous: String::new(),
        // Empty on the last page: a client polls with `after` set to the last number of this page.
        next: if last < page.last_number {
            last.to_string()
        } else {
            String::new()
        },
    };
    let events = page.events.into_iter().map(Event::try_from);
    let page = EventPage {
        collection: collection::Collection::page(
            "/api/events".to_owned(),
            events.collect::<Result<_, _>>()?,
            &pagination,
        ),
        first_number: page.first_number,
        last_number: page.last_number,
    };
    json_ld::ok(CONTEXT, &page)
}

/// `GET /api/events/{id}`
pub(crate) async fn get(request: Request) -> HandlerResult {
    let name = Collection::Events.name(&request.parameter);
    let event = request
        .call(GetEventRequest { name }, rpc!(EventsClient.get_event))
        .await?;

    json_ld::ok(CONTEXT, &Event::try_from(event)?)
}

impl TryFrom<proto::Event> for Event {
    type Error = Error;

    fn try_from(event: proto::Event) -> Result<Self, Error> {
        Ok(Self {
            node: Node::new("Event", Collection::Events, &event.name),
            number: event.number,
            name: event.event,
            object: iri::of(&event.object),
            created_at: StoreTimeZone::named(&event.time_zone).write(event.create_time.as_ref())?,
        })
    }
}
