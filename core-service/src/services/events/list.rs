//! Lists a store's events in pages.

use domain::{api_client::Scope, event_log::CursorError, id::EventId};
use proto::iri::Collection;

use storage::Storage;

use super::messages::{cursor_error, message_for_store};

use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, lookup, pages},
};

/// A page of the events of a store.
pub(super) async fn list(
    storage: &Storage,
    caller: &Caller,
    request: proto::ListEventsRequest,
) -> Result<proto::ListEventsResponse, Error> {
    let store = if request.store.is_empty() {
        caller.store()?.clone()
    } else {
        caller.require(Scope::Admin)?;
        lookup::store(storage, &request.store).await?
    };

    let mut violations = messages::read_violations(request.violations);
    let size = pages::read_size(request.page_size, &mut violations);
    if request.after.is_some_and(|after| after < 0) {
        violations.add(
            "after",
            "OUT_OF_RANGE",
            "must be 0 or the number of an event",
        );
    }
    Error::check(violations)?;

    let reader = storage.reader();
    let mut bounds = storage::events::bounds(reader, store.id).await?;
    let (after, page) = loop {
        let after = request.after.unwrap_or(bounds.retained_after);
        let page = storage::events::list(reader, store.id, after, size.into()).await?;
        // Read after the page, so that removals before it was read are known.
        bounds = storage::events::bounds(reader, store.id).await?;
        match (bounds.check_cursor(after), request.after) {
            (Ok(()), _) => break (after, page),
            // The oldest event was removed meanwhile: start from the oldest that is left.
            (Err(CursorError::Expired { .. }), None) => {}
            (Err(error), _) => return Err(cursor_error(error, "after")),
        }
    };

    let is_full = page.len() >= usize::try_from(size).unwrap_or(usize::MAX);
    let last_of_page = page.last().map(|event| event.number);
    Ok(proto::ListEventsResponse {
        events: page
            .iter()
            .map(|event| message_for_store(event, &store))
            .collect(),
        first_number: bounds.first(),
        last_number: last_number(is_full, last_of_page, (after, bounds.last)),
        after,
    })
}

/// The number of the newest event. A page that is not full reached the end of the log when it was
/// read. Events numbered since then do not count as the newest: the next call returns them.
fn last_number(is_full: bool, last_of_page: Option<i64>, (after, newest): (i64, i64)) -> i64 {
    match last_of_page {
        _ if is_full => newest,
        Some(last) => last,
        None => after,
    }
}

pub(super) async fn get(
    storage: &Storage,
    caller: &Caller,
    name: String,
) -> Result<proto::Event, Error> {
    let store = caller.store()?;
    let find = |id| storage::events::find(storage.reader(), store.id, EventId(id));
    let event = lookup::resource((Collection::Events, &name), find).await?;
    Ok(message_for_store(&event, store))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_numbered_after_the_page_was_read_is_not_the_last() {
        assert_eq!(last_number(false, Some(7), (5, 8)), 7);
        assert_eq!(last_number(false, None, (7, 8)), 7);
        assert_eq!(last_number(true, Some(7), (5, 8)), 8);
    }
}
