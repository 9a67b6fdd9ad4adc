//! Messages of events, and the errors of cursors.

use domain::{
    event::{Event, Object},
    event_log::CursorError,
    store::Store,
};
use proto::iri::Collection;

use crate::{error::Error, messages};

/// The message of an event, with its position among the events of all stores.
pub(super) fn message(event: &Event) -> proto::Event {
    proto::Event {
        name: Collection::Events.name(event.id.0),
        store: Collection::Stores.name(event.store_id.0),
        number: event.number,
        position: event.position,
        event: event.name.clone(),
        object: match event.object {
            Object::Delivery(id) => Collection::Deliveries.name(id),
            Object::Webhook(id) => Collection::Webhooks.name(id),
        },
        create_time: Some(messages::timestamp(event.created_at)),
        time_zone: String::new(),
    }
}

/// The message of an event as its store sees it: without its position, which would reveal how many
/// events other stores have.
pub(super) fn message_for_store(event: &Event, store: &Store) -> proto::Event {
    proto::Event {
        position: 0,
        time_zone: store.time_zone_name().to_owned(),
        ..message(event)
    }
}

/// The error for a cursor that was given in `field`.
pub(super) fn cursor_error(error: CursorError, field: &str) -> Error {
    match error {
        CursorError::Expired { .. } => Error::Expired("EVENTS_EXPIRED", error.to_string()),
        CursorError::Beyond { .. } => Error::invalid(field, "OUT_OF_RANGE", error.to_string()),
    }
}
