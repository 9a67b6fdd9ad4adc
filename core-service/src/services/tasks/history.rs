//! The history of a task: what commands report for it, and what its readers see of it.

use domain::{
    api_client::Scope,
    id::ApiClientId,
    task::FailureReason,
    task_event::{Remarks, TaskEvent, TaskReport, Transition},
    violation::Violations,
    worker::Worker,
};
use proto::{
    iri::Collection,
    limits::{MAX_NAME, MAX_NOTES},
};
use storage::pages::{Cursor, Start};

use super::{CommandRequest, worker::reads_any_store};
use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, pages, timestamp},
    planning::validation::checked_text,
    services::Services,
};

impl CommandRequest {
    /// A request that has no remarks.
    pub(super) fn new(
        rpc: &'static str,
        name: String,
        idempotency: Option<proto::Idempotency>,
        report: Option<proto::Report>,
    ) -> Self {
        Self {
            rpc,
            name,
            idempotency,
            report,
            notes: String::new(),
            contact_name: String::new(),
            violations: Vec::new(),
        }
    }

    pub(super) fn report(
        self,
        worker: Worker,
        caller: ApiClientId,
        violations: &mut Violations,
    ) -> TaskReport {
        let mut text = |field, text: &str, limit| checked_text(field, text, limit, violations);
        TaskReport {
            by: worker.actor(),
            api_client_id: caller,
            courier_id: worker.courier_id(),
            times: messages::device_times(self.report),
            remarks: Remarks {
                notes: text("notes", &self.notes, MAX_NOTES),
                contact_name: text("contact_name", &self.contact_name, MAX_NAME),
            },
        }
    }
}

impl Services {
    /// A page of a task's history. The first one begins with the creation, which is no row.
    pub(super) async fn list_history(
        &self,
        caller: &Caller,
        request: proto::ListTaskEventsRequest,
    ) -> Result<proto::ListTaskEventsResponse, Error> {
        let is_dispatch = caller.has(Scope::DispatchRead);
        let is_of_any_store = reads_any_store(caller);
        if !is_of_any_store {
            caller.require(Scope::Tasks)?;
        }
        let mut violations = messages::read_violations(request.violations);
        let size = pages::read_size(request.page_size, &mut violations);
        let after = read_position(&request.page_token, &mut violations);
        Error::check(violations)?;
        let (store, task) = if is_of_any_store {
            self.find_task_of_caller(caller, &request.task).await?
        } else {
            let task = self.find_own_task(caller, &request.task).await?;
            (caller.store()?.clone(), task)
        };

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

/// The position after which a page begins; `None` for the first page.
fn read_position(token: &str, violations: &mut Violations) -> Option<Cursor> {
    match pages::read_token(token, violations) {
        Start::Newest => None,
        Start::NewerThan(cursor) => Some(cursor),
        Start::OlderThan(_) => {
            let reason = "is not a token of this list";
            violations.add("page_token", "INVALID_CURSOR", reason);
            None
        }
    }
}
