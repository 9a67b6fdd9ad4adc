//! A store's events, a page at a time.

use domain::{api_client::Scope, event::Event, event_log::CursorError, id::EventId, store::Store};
use proto::iri::Collection;

use super::{message, refused};

use crate::{
    error::Error,
    grpc::{Core, caller::Caller, pages, planning},
};

impl Core {
    pub(super) async fn list_events(
        &self,
        caller: &Caller,
        request: proto::ListEventsRequest,
    ) -> Result<proto::ListEventsResponse, Error> {
        let store = if request.store.is_empty() {
            caller.store()?.clone()
        } else {
            caller.require(Scope::Admin)?;
            self.find_store(&request.store).await?
        };

        let mut violations = planning::violations(request.violations);
        let size = pages::read_size(request.page_size, &mut violations);
        if request.after.is_some_and(|after| after < 0) {
            violations.add(
                "after",
                "OUT_OF_RANGE",
                "must be 0 or the number of an event",
            );
        }
        if !violations.is_empty() {
            return Err(Error::Invalid(violations));
        }

        let reader = self.storage.reader();
        let mut extent = storage::events::extent(reader, store.id).await?;
        let (after, page) = loop {
            let after = request.after.unwrap_or(extent.trimmed_to);
            let page = storage::events::list(reader, store.id, after, size.into()).await?;
            // After the page: what was removed before it was read is known now.
            extent = storage::events::extent(reader, store.id).await?;
            match (extent.check(after), request.after) {
                (Ok(()), _) => break (after, page),
                // The oldest went just now: then it begins with the oldest that is left.
                (Err(CursorError::Expired { .. }), None) => {}
                (Err(error), _) => return Err(refused(error, "after")),
            }
        };

        // A page that is not full ends where the log ended when it was read; what has been
        // numbered since is for the next look.
        let is_full = page.len() >= usize::try_from(size).unwrap_or(usize::MAX);
        let last = match page.last() {
            _ if is_full => extent.last,
            Some(event) => event.number,
            None => after,
        };
        Ok(proto::ListEventsResponse {
            events: page
                .iter()
                .map(|event| message_of_store(event, &store))
                .collect(),
            first_number: extent.first(),
            last_number: last,
            after,
        })
    }

    pub(super) async fn get_event(
        &self,
        caller: &Caller,
        name: String,
    ) -> Result<proto::Event, Error> {
        let store = caller.store()?;
        let event = match Collection::Events.id(&name) {
            Some(id) => storage::events::find(self.storage.reader(), store.id, EventId(id)).await?,
            None => None,
        };
        event
            .map(|event| message_of_store(&event, store))
            .ok_or(Error::NotFound { name })
    }
}

/// As a shop sees it: what others do is none of its business.
fn message_of_store(event: &Event, store: &Store) -> proto::Event {
    proto::Event {
        position: 0,
        time_zone: store.time_zone_name().to_owned(),
        ..message(event)
    }
}
