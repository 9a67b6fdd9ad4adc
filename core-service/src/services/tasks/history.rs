//! The history of a task, as its readers see it.

use domain::{
    api_client::Scope,
    task::FailureReason,
    task_event::{TaskEvent, Transition},
};
use proto::iri::Collection;
use storage::pages::{Cursor, Start};

use super::require_reader;
use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, pages, timestamp},
    services::Services,
};

impl Services {
    /// A page of a task's history. The first one begins with the creation, which is no row.
    pub(super) async fn list_history(
        &self,
        caller: &Caller,
        request: proto::ListTaskEventsRequest,
    ) -> Result<proto::ListTaskEventsResponse, Error> {
        let is_dispatch = caller.has(Scope::DispatchRead);
        require_reader(caller)?;
        let mut violations = messages::read_violations(request.violations);
        let size = pages::read_size(request.page_size, &mut violations);
        let after = pages::read_next(&request.page_token, &mut violations);
        Error::check(violations)?;
        let (store, task) = self.find_task_of_caller(caller, &request.task).await?;

        let creation = after.is_none().then(|| proto::TaskEvent {
            event: "task:created".to_owned(),
            create_time: Some(timestamp(task.created_at)),
            occurred_time: Some(timestamp(task.created_at)),
            ..proto::TaskEvent::default()
        });
        let remaining = size.saturating_sub(after.is_none().into());
        let reader = self.storage.reader();
        // Every change is later than the creation.
        let after = after.map_or(task.created_at, |cursor| cursor.created_at);
        let page = storage::task_events::list(reader, store.id, task.id, after, remaining);
        let (events, last) = page.await.map_err(Error::from)?;
        let events = events.into_iter().map(|event| message(event, is_dispatch));
        let next_page_token = last.map(|created_at| {
            let id = task.id.0;
            pages::encode(Start::NewerThan(Cursor { created_at, id }))
        });
        Ok(proto::ListTaskEventsResponse {
            events: creation.into_iter().chain(events).collect(),
            next_page_token: next_page_token.unwrap_or_default(),
            time_zone: store.time_zone_name().to_owned(),
        })
    }
}

/// Only dispatch sees notes, and who reported the event.
fn message(event: TaskEvent, is_dispatch: bool) -> proto::TaskEvent {
    let mut message = proto::TaskEvent {
        event: format!("task:{}", event.transition.name().as_str()),
        create_time: Some(timestamp(event.created_at)),
        occurred_time: Some(timestamp(event.occurrence.at)),
        occurred_time_clamped: event.occurrence.is_clamped,
        ..proto::TaskEvent::default()
    };
    if let Some(courier_id) = event.courier_id.filter(|_| is_dispatch) {
        message.courier = Collection::Couriers.name(courier_id);
    }
    let notes = match event.transition {
        Transition::Started
        | Transition::Cancelled
        | Transition::Reopened
        | Transition::Unassigned
        | Transition::Updated => None,
        Transition::Assigned(list) => {
            if let Some(list) = list.filter(|_| is_dispatch) {
                message.courier = Collection::Couriers.name(list.courier_id);
                message.list_day = list.day.to_string();
            }
            None
        }
        Transition::Done(remarks) => {
            message.contact_name = remarks.contact_name.unwrap_or_default();
            remarks.notes
        }
        Transition::Failed { reason, notes } => {
            reason.as_str().clone_into(&mut message.failure_reason);
            notes
        }
        Transition::IncidentReported { reason, notes } => {
            message.failure_reason = code(reason.as_ref());
            notes
        }
        Transition::Conflict { reason, remarks } => {
            message.failure_reason = code(reason.as_ref());
            message.contact_name = remarks.contact_name.unwrap_or_default();
            remarks.notes
        }
        Transition::IncidentClosed { notes } => notes,
        Transition::Rescheduled { from, to } => {
            message.after = Some(timestamp(to.after));
            message.before = Some(timestamp(to.before));
            message.previous_after = Some(timestamp(from.after));
            message.previous_before = Some(timestamp(from.before));
            None
        }
    };
    if is_dispatch {
        message.notes = notes.unwrap_or_default();
        message.actor = messages::actor(event.by).into();
        let api_client = event
            .api_client_id
            .map(|id| Collection::ApiClients.name(id));
        message.api_client = api_client.unwrap_or_default();
    }
    message
}

fn code(reason: Option<&FailureReason>) -> String {
    reason.map_or("", FailureReason::as_str).to_owned()
}
