//! Commands on tasks: for whom a caller gives them, what they report, and the transaction of a command.

use std::collections::BTreeSet;

use domain::{
    api_client::Scope,
    delivery::Delivery,
    id::{ApiClientId, CourierId},
    lifecycle::{Command, Refusal},
    store::Store,
    task::{Task, TaskKind},
    task_event::{Remarks, TaskEvent, TaskReport, TransitionName},
    violation::Violations,
    worker::Worker,
};
use proto::{
    iri::Collection,
    limits::{MAX_NAME, MAX_NOTES},
};
use storage::courier_lists::{self, Selection};
use tonic::Response;

use super::late::ReportedTask;
use crate::{
    auth::{audit::Audit, caller::Caller},
    error::Error,
    idempotency::{CommandResponse, RequestKey},
    messages,
    planning::validation::checked_text,
    services::{
        Services,
        delivery_changes::{DeliveryWriter, TASK_STATE, WrittenEvents},
    },
};

/// The field of a report in which dispatch names the courier.
pub(super) const ON_BEHALF_OF: &str = "report.on_behalf_of";

/// A request to change a task.
pub(super) struct CommandRequest {
    pub(super) rpc: &'static str,
    pub(super) name: String,
    pub(super) idempotency: Option<proto::Idempotency>,
    pub(super) report: Option<proto::Report>,
    pub(super) notes: String,
    pub(super) contact_name: String,
    /// What a gateway found.
    pub(super) violations: Vec<proto::Violation>,
}

/// A command on a task, as it was found.
struct TaskChange {
    reported: ReportedTask,
    store: Store,
    task: Task,
    command: Command,
    report: TaskReport,
}

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

    fn report(
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
    /// For whom a caller changes tasks. Programs of scope `tasks:all` act for dispatch, if they may act at all.
    pub(in crate::services) fn worker(
        &self,
        caller: &Caller,
        scope: Scope,
        report: Option<&proto::Report>,
    ) -> Result<Worker, Error> {
        let on_behalf_of = report.map_or("", |report| &report.on_behalf_of);
        if !on_behalf_of.is_empty() {
            caller.require(Scope::Dispatch)?;
            let id = messages::id_in(Collection::Couriers, on_behalf_of)?;
            return Ok(Worker::OnBehalfOf(CourierId(id)));
        }
        if let Some(id) = caller.courier() {
            let today = self.today();
            return Ok(Worker::Courier { id, today });
        }
        if !caller.has(Scope::Dispatch) {
            caller.require(scope)?;
        }
        Ok(Worker::Dispatch)
    }

    /// Applies a command to a task of any store.
    pub(super) async fn change_task(
        &self,
        caller: &Caller,
        worker: Worker,
        mut call: CommandRequest,
        command: impl FnOnce(&Store, &mut Violations) -> Option<Command> + Send,
    ) -> Result<Response<proto::Task>, Error> {
        let (rpc, idempotency) = (call.rpc, call.idempotency.take());
        let name = std::mem::take(&mut call.name);
        let (store, task) = self.find_any_task(&name).await?;
        let key = self
            .idempotency
            .read_key(caller, rpc, &name, idempotency)?
            .map(|key| key.of_delivery(store.id, task.delivery_id));
        let (response, events) = if let Some(replayed) = self.idempotency.replay(key).await? {
            (replayed, None)
        } else {
            let reported = self.reported_task(worker, &store, &task);
            let found = std::mem::take(&mut call.violations);
            let mut violations = messages::read_violations(found);
            let is_late = self.is_late(&reported, &task, &mut violations).await?;
            let command = command(&store, &mut violations);
            let report = call.report(worker, caller.id, &mut violations);
            let Some(command) = command.filter(|_| violations.is_empty()) else {
                return Err(Error::Invalid(violations));
            };
            if is_late && !command.is_end() {
                return Err(Error::NotFound(name));
            }
            let change = TaskChange {
                reported,
                store,
                task,
                command,
                report,
            };
            self.write_change(key, change, &caller.audit).await?
        };
        let effect = self.finish(&response, events);
        let reply = CommandResponse::into_task(response, TASK_STATE)?;
        caller.audit_effect(rpc, &name, effect);
        Ok(reply)
    }

    async fn write_change(
        &self,
        request_key: RequestKey,
        change: TaskChange,
        audit: &Audit,
    ) -> Result<(Response<CommandResponse>, Option<WrittenEvents>), Error> {
        let TaskChange {
            reported,
            store,
            task,
            command,
            report,
        } = change;
        let (worker, is_keyed) = (reported.worker, request_key.is_some());
        let is_completion = command == Command::Complete;
        if is_completion && task.is_done() && !is_keyed && worker.has(&task) {
            let unchanged = CommandResponse::of_task(messages::task_with_place(task, &store));
            return Ok((Response::new(unchanged), None));
        }
        let mut writer = DeliveryWriter::new(self, store.time_zone.clone(), report);
        let kind = task.kind;
        let mut lists = BTreeSet::new();
        if let Command::Reschedule(to) = &command {
            let is_requested = to.is_time_slot && kind == TaskKind::Dropoff;
            writer.slot = self.find_limited_slot(&store, is_requested).await?;
            // It leaves its list, and with `both` so does the other task.
            let selection = Selection::Tasks([task.id].into());
            let tasks = courier_lists::tasks(self.storage.reader(), &selection).await?;
            lists.extend(tasks.iter().filter_map(|(_, task)| Some(task.place?.list)));
        }
        let completion = self.find_completion(&command, worker, &store, &task);
        let completion = completion.await?;
        let change = courier_lists::Change {
            at: self.clock.now(),
            by: writer.report.api_client_id,
        };
        let name = Collection::Tasks.name(task.id);
        let audit = audit.clone();
        let write = self
            .idempotency
            .write_with(request_key, move |transaction| async move {
                courier_lists::lock(&transaction, &lists, &change).await?;
                let apply = |delivery: &mut Delivery, now| {
                    let is_reschedule = matches!(command, Command::Reschedule(_));
                    if is_reschedule && !delivery.is_in_lists(&lists) {
                        return Err(Refusal::Moved);
                    }
                    if !worker.has(delivery.task(kind)) {
                        return Err(Refusal::NotAssigned);
                    }
                    let may_do = command != Command::Reopen
                        || worker.may_reopen(delivery.task(kind), completion.as_ref());
                    let events = delivery.apply(kind, &command, writer.report.by, now)?;
                    may_do.then_some(events).ok_or(Refusal::State(kind))
                };
                let changed = writer.change(&transaction, store.id, task.delivery_id, apply);
                let changed = reported.or_late(&transaction, &writer, &command, changed.await);
                match changed.await {
                    Ok(Some(changed)) => {
                        if changed.events.is_some() {
                            let record = courier_lists::record_change;
                            record(&transaction, &lists, &change).await?;
                            audit.record(&transaction, Some(store.id), name).await?;
                        }
                        let task = changed.delivery.into_task(kind);
                        let task = if worker.has(&task) {
                            messages::task_with_place(task, &store)
                        } else {
                            // Of a late report: another courier's by now.
                            messages::task(task, &store)
                        };
                        Ok((CommandResponse::of_task(task), changed.events))
                    }
                    Ok(None) => Err(Error::NotFound(name)),
                    // Stored, too: the state may permit a repetition of the command later.
                    Err(Error::Conflict(TASK_STATE, message)) => {
                        let conflict =
                            reported.record_conflict(&transaction, &writer, &command, is_keyed);
                        conflict.await?;
                        Ok((CommandResponse::refused(message), None))
                    }
                    Err(error) => Err(error),
                }
            });
        let (response, events) = write.await?;
        let events = events.flatten();
        if response.get_ref().task.is_none() {
            // Brings the incident of the conflict to watchers.
            self.queue.streams.events_written.send_replace(());
        }
        if is_completion && events.is_some() {
            self.metrics.tasks_completed.inc(kind.as_str());
            self.count_estimate(task.id);
        }
        Ok((response, events))
    }

    /// The newest completion of a task that a courier is to reopen.
    async fn find_completion(
        &self,
        command: &Command,
        worker: Worker,
        store: &Store,
        task: &Task,
    ) -> Result<Option<TaskEvent>, Error> {
        if *command != Command::Reopen || !matches!(worker, Worker::Courier { .. }) {
            return Ok(None);
        }
        let (reader, done) = (self.storage.reader(), [TransitionName::Done]);
        let newest = storage::task_events::newest(reader, store.id, task.id, &done, 1);
        Ok(newest.await?.pop())
    }

    /// Whether a courier reports of a task late: it was its own within the last 24 hours. Fails if it is not for the
    /// caller to report of it.
    pub(in crate::services) async fn is_late(
        &self,
        reported: &ReportedTask,
        task: &Task,
        violations: &mut Violations,
    ) -> Result<bool, Error> {
        let field = ON_BEHALF_OF;
        let has_task = reported.worker.has(task);
        match reported.worker {
            Worker::OnBehalfOf(id) => {
                let courier = self.find_courier(&Collection::Couriers.name(id)).await?;
                if courier.disabled_at.is_some() {
                    violations.add(field, "UNKNOWN_COURIER", "must be an enabled courier");
                } else if !has_task {
                    let description = "must be the courier whose list has the task";
                    violations.add(field, "UNKNOWN_COURIER", description);
                }
                Ok(false)
            }
            Worker::Dispatch => Ok(false),
            Worker::Courier { .. } if has_task => Ok(false),
            Worker::Courier { .. } => {
                if reported.was_own(self.storage.reader()).await? {
                    return Ok(true);
                }
                Err(Error::NotFound(Collection::Tasks.name(task.id)))
            }
        }
    }
}
