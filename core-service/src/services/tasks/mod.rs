//! Tasks: read by shops, changed by couriers and dispatchers.

mod batch;
mod history;
pub(super) mod late;
mod listing;
mod requests;
mod update;
mod watch;
pub(super) mod worker;

use std::{
    collections::BTreeSet,
    pin::{Pin, pin},
    sync::Arc,
};

use domain::{
    api_client::Scope,
    delivery::Delivery,
    lifecycle::{Command, Refusal},
    store::Store,
    task::{Task, TaskKind},
    task_event::TaskReport,
    violation::Violations,
    worker::Worker,
};
use futures_util::Stream;
use proto::iri::Collection;
use storage::courier_lists::{self, Selection};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

pub(crate) use self::watch::TaskLog;
use self::{late::ReportedTask, requests::read_reschedule, worker::reads_any_store};
use super::{
    Reply, Services,
    delivery_changes::{DeliveryWriter, TASK_STATE, WrittenEvents},
    stream_until_end,
};
use crate::{
    auth::{
        audit::Audit,
        caller::{Caller, Effect},
    },
    error::Error,
    idempotency::{CommandResponse, RequestKey},
    messages,
};

/// A request to change a task.
struct CommandRequest {
    rpc: &'static str,
    name: String,
    idempotency: Option<proto::Idempotency>,
    report: Option<proto::Report>,
    notes: String,
    contact_name: String,
    /// What a gateway found.
    violations: Vec<proto::Violation>,
}

/// A command on a task, as it was found.
struct TaskChange {
    reported: ReportedTask,
    store: Store,
    task: Task,
    command: Command,
    report: TaskReport,
}

#[tonic::async_trait]
impl proto::tasks_server::Tasks for Services {
    type WatchTasksStream =
        Pin<Box<dyn Stream<Item = Result<proto::WatchTasksResponse, Status>> + Send>>;

    async fn get_task(&self, request: Request<proto::GetTaskRequest>) -> Reply<proto::Task> {
        let (caller, request) = Caller::of(request)?;
        let name = request.name;

        let reply = if reads_any_store(&caller) {
            let (store, task) = self.find_task_of_caller(&caller, &name).await?;
            self.record_read(&caller, Some(store.id), &name);
            messages::task_with_place(task, &store)
        } else {
            caller.require(Scope::Tasks)?;
            let task = self.find_own_task(&caller, &name).await?;
            messages::task(task, caller.store()?)
        };

        Ok(Response::new(reply))
    }

    async fn list_tasks(
        &self,
        request: Request<proto::ListTasksRequest>,
    ) -> Reply<proto::ListTasksResponse> {
        let (caller, request) = Caller::of(request)?;
        let page = self.list_page(&caller, &request).await?;
        self.record_read(&caller, None, Collection::Tasks.segment());
        Ok(Response::new(page))
    }

    async fn watch_tasks(
        &self,
        request: Request<proto::WatchTasksRequest>,
    ) -> Reply<Self::WatchTasksStream> {
        let (caller, claims) = self
            .authenticator
            .authenticate_stream(request.metadata())
            .await?;
        watch::authorize(&caller)?;
        let open_watch = self.open_watch(&caller)?;
        if let Some(caller) = request.extensions().get::<Arc<Caller>>() {
            self.record_read(caller, None, Collection::Tasks.segment());
        }
        let request = request.into_inner();
        let mut violations = Violations::new();
        let list = request.list.unwrap_or_default();
        if request.after_position.is_some() && list.day.is_empty() {
            let reason =
                "is required with after_position: that of ListTasks, which may be yesterday's";
            violations.add("day", "REQUIRED", reason);
        }
        let filter = self.read_task_filter(&list, &mut violations);
        Error::check(violations.within("list"))?;
        let filter = filter?;
        let respond = watch::responder(filter, &caller);
        let subscription = self.task_feed.subscribe(request.after_position).await?;

        let (responses, stream) = mpsc::channel(1);
        let (authenticator, feed) = (Arc::clone(&self.authenticator), Arc::clone(&self.task_feed));
        let serving = self.task_tracker.spawn(async move {
            let _open_watch = open_watch;
            let revoked = pin!(authenticator.revoked(&claims, watch::authorize));
            feed.serve(revoked, subscription, &responses, respond).await
        });
        Ok(Response::new(Box::pin(stream_until_end(stream, serving))))
    }

    async fn start_task(&self, request: Request<proto::StartTaskRequest>) -> Reply<proto::Task> {
        let (caller, request) = Caller::of(request)?;
        let worker = self.worker(&caller, Scope::Dispatch, request.report.as_ref())?;
        let (name, idempotency) = (request.name, request.idempotency);
        let call = CommandRequest {
            violations: request.violations,
            ..CommandRequest::new("StartTask", name, idempotency, request.report)
        };
        let started = self.change_task(&caller, worker, call, |_, _| Some(Command::Start));
        Ok(started.await?)
    }

    async fn complete_task(
        &self,
        request: Request<proto::CompleteTaskRequest>,
    ) -> Reply<proto::Task> {
        let (caller, request) = Caller::of(request)?;
        let worker = self.worker(&caller, Scope::TasksAll, request.report.as_ref())?;
        let (name, idempotency) = (request.name, request.idempotency);
        let call = CommandRequest {
            notes: request.notes,
            contact_name: request.contact_name,
            violations: request.violations,
            ..CommandRequest::new("CompleteTask", name, idempotency, request.report)
        };
        let completed = self.change_task(&caller, worker, call, |_, _| Some(Command::Complete));
        Ok(completed.await?)
    }

    async fn complete_tasks(
        &self,
        request: Request<proto::CompleteTasksRequest>,
    ) -> Reply<proto::CompleteTasksResponse> {
        let (caller, request) = Caller::of(request)?;
        let worker = self.worker(&caller, Scope::Dispatch, request.report.as_ref())?;
        Ok(Response::new(
            self.complete_each(&caller, worker, request).await?,
        ))
    }

    async fn fail_task(&self, request: Request<proto::FailTaskRequest>) -> Reply<proto::Task> {
        let (caller, request) = Caller::of(request)?;
        let worker = self.worker(&caller, Scope::Dispatch, request.report.as_ref())?;
        let (name, idempotency) = (request.name, request.idempotency);
        let call = CommandRequest {
            notes: request.notes,
            violations: request.violations,
            ..CommandRequest::new("FailTask", name, idempotency, request.report)
        };
        let reason = request.reason.parse();
        let failed = self.change_task(&caller, worker, call, |_, violations| {
            let reason = violations.check("reason", "MALFORMED_REASON", reason);
            reason.map(Command::Fail)
        });
        Ok(failed.await?)
    }

    async fn reopen_task(&self, request: Request<proto::ReopenTaskRequest>) -> Reply<proto::Task> {
        let (caller, request) = Caller::of(request)?;
        let worker = self.worker(&caller, Scope::Dispatch, request.report.as_ref())?;
        let (name, idempotency) = (request.name, request.idempotency);
        let call = CommandRequest {
            violations: request.violations,
            ..CommandRequest::new("ReopenTask", name, idempotency, request.report)
        };
        let reopened = self.change_task(&caller, worker, call, |_, _| Some(Command::Reopen));
        Ok(reopened.await?)
    }

    async fn reschedule_task(
        &self,
        request: Request<proto::RescheduleTaskRequest>,
    ) -> Reply<proto::Task> {
        let (caller, mut request) = Caller::with_scope(request, Scope::Dispatch)?;
        let worker = self.worker(&caller, Scope::Dispatch, request.report.as_ref())?;
        let (name, idempotency) = (
            std::mem::take(&mut request.name),
            request.idempotency.take(),
        );
        let call = CommandRequest {
            violations: std::mem::take(&mut request.violations),
            ..CommandRequest::new("RescheduleTask", name, idempotency, request.report.take())
        };
        let now = self.clock.now();
        let rescheduled = self.change_task(&caller, worker, call, |store, violations| {
            let now = now.to_zoned(store.time_zone.clone());
            read_reschedule(&request, &now, violations).map(Command::Reschedule)
        });
        Ok(rescheduled.await?)
    }

    async fn update_task(&self, request: Request<proto::UpdateTaskRequest>) -> Reply<proto::Task> {
        let (caller, request) = Caller::with_scope(request, Scope::Dispatch)?;
        Ok(self.correct_task(&caller, request).await?)
    }

    async fn list_task_events(
        &self,
        request: Request<proto::ListTaskEventsRequest>,
    ) -> Reply<proto::ListTaskEventsResponse> {
        let (caller, request) = Caller::of(request)?;
        let task = request.task.clone();
        let history = self.list_history(&caller, request).await?;
        self.record_read(&caller, None, &task);
        Ok(Response::new(history))
    }
}

impl Services {
    /// Applies a command to a task of any store.
    async fn change_task(
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
        let effect = match (Effect::of(&response), &events) {
            (Effect::Changed, None) => Effect::Unchanged,
            (effect, _) => effect,
        };
        if let Some(events) = events {
            self.dispatch(events);
        }
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
}
