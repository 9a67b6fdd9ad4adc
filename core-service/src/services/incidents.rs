//! Incidents of tasks: reported by couriers and dispatch, closed by dispatch, read by shops too.

use domain::{
    api_client::Scope,
    device_clock::DeviceTimes,
    id::IncidentId,
    incident::{Incident, IncidentContent},
    lifecycle::Refusal,
    task::{Actor, FailureReason},
    task_event::{Remarks, TaskReport},
    violation::Violations,
    worker::Worker,
};
use proto::{incident::State, iri::Collection, limits::MAX_NOTES};
use storage::{
    incidents::{self, Filter},
    pages::{Cursor, Start},
};
use tonic::{Request, Response};

use super::{
    Reply, Services,
    delivery_changes::{refused, time_of_change},
};
use crate::{
    auth::caller::{Caller, Effect},
    error::Error,
    messages::{self, pages, timestamp},
    planning::validation::{self, checked_text},
};

/// Who reads incidents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Shop,
    Courier,
    Dispatch,
}

impl Reader {
    fn of(caller: &Caller) -> Result<Self, Error> {
        if caller.has(Scope::DispatchRead) {
            return Ok(Self::Dispatch);
        }
        if caller.courier().is_some() {
            return Ok(Self::Courier);
        }
        caller.require(Scope::Tasks)?;
        Ok(Self::Shop)
    }
}

/// The response to a change, and what the change has done.
type Changed = (Response<proto::Incident>, Effect);

#[tonic::async_trait]
impl proto::incidents_server::Incidents for Services {
    async fn report_incident(
        &self,
        request: Request<proto::ReportIncidentRequest>,
    ) -> Reply<proto::Incident> {
        let (caller, request) = Caller::of(request)?;
        let worker = self.worker(&caller, Scope::Dispatch, request.report.as_ref())?;
        let (reported, effect) = self.open_incident(&caller, worker, request).await?;
        caller.audit_effect("ReportIncident", &reported.get_ref().name, effect);
        Ok(reported)
    }

    async fn list_incidents(
        &self,
        request: Request<proto::ListIncidentsRequest>,
    ) -> Reply<proto::ListIncidentsResponse> {
        let (caller, request) = Caller::of(request)?;
        let page = self.read_incidents(&caller, request).await?;
        self.record_read(&caller, None, Collection::Incidents.segment());
        Ok(Response::new(page))
    }

    async fn close_incident(
        &self,
        request: Request<proto::CloseIncidentRequest>,
    ) -> Reply<proto::Incident> {
        let (caller, request) = Caller::with_scope(request, Scope::Dispatch)?;
        let (closed, effect) = self.end_incident(&caller, request).await?;
        caller.audit_effect("CloseIncident", &closed.get_ref().name, effect);
        Ok(closed)
    }
}

impl Services {
    async fn open_incident(
        &self,
        caller: &Caller,
        worker: Worker,
        mut request: proto::ReportIncidentRequest,
    ) -> Result<Changed, Error> {
        let found = std::mem::take(&mut request.violations);
        let mut violations = messages::read_violations(found);
        if !violations.is_empty() {
            read_content(request, &mut violations);
            return Err(Error::Invalid(violations));
        }
        let (store, task) = self.find_any_task(&request.task).await?;
        let idempotency = request.idempotency.take();
        let key = self
            .idempotency
            .read_key(caller, "ReportIncident", &request.task, idempotency)?
            .map(|key| key.of_delivery(store.id, task.delivery_id));
        if let Some(replayed) = self.idempotency.replay(key).await? {
            return Ok((replayed, Effect::Replayed));
        }
        let reported = self.reported_task(worker, &store, &task);
        self.is_late(&reported, &task, &mut violations).await?;
        let reader = Reader::of(caller)?;
        let report = TaskReport {
            by: worker.actor(),
            api_client_id: caller.id,
            courier_id: worker.courier_id(),
            times: messages::device_times(request.report.take()),
            remarks: Remarks::default(),
        };
        let content = read_content(request, &mut violations);
        Error::check(violations)?;

        let (now, is_keyed) = (self.clock.now(), key.is_some());
        let audit = caller.audit.clone();
        let write = self
            .idempotency
            .write_with(key, move |transaction| async move {
                let delivery_id = task.delivery_id;
                let found = storage::deliveries::find_and_lock(&transaction, store.id, delivery_id);
                let missing = || Error::NotFound(Collection::Tasks.name(task.id));
                let mut delivery = found.await?.ok_or_else(missing)?;
                let has_task = worker.has(delivery.task(task.kind));
                if !has_task && !reported.was_own(&transaction).await? {
                    let refusal = Refusal::NotAssigned;
                    return Err(refused(refusal, &delivery, &store.time_zone));
                }
                if !is_keyed {
                    let by = report.api_client_id;
                    let repeated =
                        incidents::find_repeated(&transaction, store.id, task.id, by, &content);
                    if let Some(incident) = repeated.await? {
                        return Ok((message(incident, reader), false));
                    }
                }

                let now = time_of_change(&delivery, now);
                let reported = delivery.report_incident(task.kind, content, &report, now);
                let (incident, event) =
                    reported.map_err(|why| refused(why, &delivery, &store.time_zone))?;
                incidents::insert(&transaction, &delivery, &incident, &event).await?;
                let name = Collection::Incidents.name(incident.id);
                audit.record(&transaction, Some(store.id), name).await?;
                Ok((message(incident, reader), true))
            });
        let (response, is_changed) = write.await?;
        Ok(self.incident_changed(response, is_changed))
    }

    async fn end_incident(
        &self,
        caller: &Caller,
        request: proto::CloseIncidentRequest,
    ) -> Result<Changed, Error> {
        let (name, idempotency) = (request.name, request.idempotency);
        let find = |id| incidents::find(self.storage.reader(), IncidentId(id));
        let found = messages::find_resource(Collection::Incidents, &name, find).await?;
        let key = self
            .idempotency
            .read_key(caller, "CloseIncident", &name, idempotency)?
            .map(|key| key.of_delivery(found.store_id, found.delivery_id));
        if let Some(replayed) = self.idempotency.replay(key).await? {
            return Ok((replayed, Effect::Replayed));
        }
        let mut violations = Violations::new();
        let closed_with = &request.closed_with;
        let notes = checked_text("closed_with", closed_with, MAX_NOTES, &mut violations);
        Error::check(violations)?;
        let report = TaskReport {
            by: Actor::Dispatch,
            api_client_id: caller.id,
            courier_id: None,
            times: DeviceTimes::default(),
            remarks: Remarks {
                notes,
                contact_name: None,
            },
        };

        let (now, audit) = (self.clock.now(), caller.audit.clone());
        let write = self
            .idempotency
            .write_with(key, move |transaction| async move {
                let (store_id, id) = (found.store_id, found.delivery_id);
                let delivery = storage::deliveries::find_and_lock(&transaction, store_id, id);
                let delivery = delivery.await?;
                let incident = incidents::find_and_lock(&transaction, store_id, found.id).await?;
                let (Some(mut delivery), Some(mut incident)) = (delivery, incident) else {
                    return Err(Error::NotFound(name));
                };
                let now = time_of_change(&delivery, now);
                let event = delivery.close_incident(&mut incident, &report, now);
                if let Some(event) = &event {
                    incidents::close(&transaction, &delivery, &incident, event).await?;
                    audit.record(&transaction, Some(store_id), name).await?;
                }
                Ok((message(incident, Reader::Dispatch), event.is_some()))
            });
        let (response, is_changed) = write.await?;
        Ok(self.incident_changed(response, is_changed))
    }

    /// Wakes what brings the change to watchers. To be called after the commit.
    fn incident_changed(
        &self,
        response: Response<proto::Incident>,
        is_changed: Option<bool>,
    ) -> Changed {
        self.queue.streams.events_written.send_replace(());
        let effect = match is_changed {
            Some(true) => Effect::Changed,
            Some(false) => Effect::Unchanged,
            None => Effect::Replayed,
        };
        (response, effect)
    }

    async fn read_incidents(
        &self,
        caller: &Caller,
        request: proto::ListIncidentsRequest,
    ) -> Result<proto::ListIncidentsResponse, Error> {
        let reader = Reader::of(caller)?;
        let mut violations = messages::read_violations(request.violations);
        let size = pages::read_size(request.page_size, &mut violations);
        let mut start = pages::read_token(&request.page_token, &mut violations);
        if matches!(start, Start::NewerThan(_)) {
            let reason = "is not a token of this list";
            violations.add("page_token", "INVALID_CURSOR", reason);
            start = Start::Newest;
        }
        let is_of_task = !request.task.is_empty();
        if !is_of_task && reader != Reader::Dispatch {
            violations.add("task", "REQUIRED", "is required");
        }
        Error::check(violations)?;
        let task = match reader {
            Reader::Dispatch if !is_of_task => None,
            Reader::Dispatch | Reader::Courier | Reader::Shop => {
                Some(self.find_task_of_caller(caller, &request.task).await?)
            }
        };

        let filter = Filter {
            task: task.as_ref().map(|(store, task)| (store.id, task.id)),
            open_only: request.open_only,
        };
        let page = incidents::list(self.storage.reader(), filter, start, size);
        let (mut page, has_more) = page.await?;
        let has_more = pages::shorten(&mut page, start, Incident::text_bytes) || has_more;
        let last = page.last().filter(|_| has_more).map(|last| Cursor {
            created_at: last.created_at,
            id: last.id.0,
        });
        let next_page_token = last.map(|last| pages::encode(Start::OlderThan(last)));
        let time_zone = task.map(|(store, _)| store.time_zone_name().to_owned());
        let page = page.into_iter().map(|incident| message(incident, reader));
        Ok(proto::ListIncidentsResponse {
            incidents: page.collect(),
            next_page_token: next_page_token.unwrap_or_default(),
            time_zone: time_zone.unwrap_or_default(),
        })
    }
}

fn read_content(
    request: proto::ReportIncidentRequest,
    violations: &mut Violations,
) -> IncidentContent {
    let (description, reason) = (&request.description, &request.failure_reason);
    let content = IncidentContent {
        description: checked_text("description", description, MAX_NOTES, violations),
        reason: if reason.is_empty() {
            None
        } else {
            violations.check("failure_reason", "MALFORMED_REASON", reason.parse())
        },
        metadata: validation::metadata("metadata", request.metadata, violations),
    };
    let has_neither = content.description.is_none() && reason.is_empty();
    let is_unreadable = |field| violations.has_violation_in(field);
    if has_neither
        && !["description", "failure_reason"]
            .into_iter()
            .any(is_unreadable)
    {
        let required = "is required, unless a reason is given";
        violations.add("description", "REQUIRED", required);
    }
    validation::check_total("metadata", content.text_bytes(), violations);
    content
}

/// Only dispatch sees who reported it, and what was done.
pub(super) fn message(incident: Incident, reader: Reader) -> proto::Incident {
    let state = match incident.closing {
        None => State::Open,
        Some(_) => State::Closed,
    };
    let close_time = incident.closing.as_ref().map(|closing| closing.at);
    let content = incident.content;
    let reason = content.reason.as_ref().map(FailureReason::as_str);
    let mut message = proto::Incident {
        name: Collection::Incidents.name(incident.id),
        task: Collection::Tasks.name(incident.task_id),
        state: state.into(),
        failure_reason: reason.unwrap_or_default().to_owned(),
        description: content.description.unwrap_or_default(),
        create_time: Some(timestamp(incident.created_at)),
        occurred_time: Some(timestamp(incident.occurrence.at)),
        occurred_time_clamped: incident.occurrence.is_clamped,
        close_time: close_time.map(timestamp),
        ..proto::Incident::default()
    };
    if reader != Reader::Shop {
        message.metadata = content.metadata.into_iter().collect();
    }
    if reader == Reader::Dispatch {
        let closed_with = incident.closing.and_then(|closing| closing.with);
        let api_client = incident
            .api_client_id
            .map(|id| Collection::ApiClients.name(id));
        message.store = Collection::Stores.name(incident.store_id);
        message.closed_with = closed_with.unwrap_or_default();
        message.actor = messages::actor(incident.by).into();
        message.api_client = api_client.unwrap_or_default();
    }
    message
}
