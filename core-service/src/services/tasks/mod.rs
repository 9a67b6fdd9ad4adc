//! Tasks: read by shops, changed by couriers and dispatchers.

mod batch;
mod commands;
mod history;
pub(super) mod late;
mod listing;
mod requests;
mod update;
mod watch;

use std::{
    borrow::Cow,
    pin::{Pin, pin},
    sync::Arc,
};

use domain::{
    api_client::Scope, id::TaskId, lifecycle::Command, store::Store, task::Task,
    violation::Violations, worker::Worker,
};
use futures_util::Stream;
use proto::iri::Collection;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status};

pub(crate) use self::watch::TaskLog;
use self::{commands::CommandRequest, requests::read_reschedule};
use super::{Reply, Services, stream_until_end};
use crate::{auth::caller::Caller, error::Error, messages};

#[tonic::async_trait]
impl proto::tasks_server::Tasks for Services {
    type WatchTasksStream =
        Pin<Box<dyn Stream<Item = Result<proto::WatchTasksResponse, Status>> + Send>>;

    async fn get_task(&self, request: Request<proto::GetTaskRequest>) -> Reply<proto::Task> {
        let (caller, request) = Caller::of(request)?;
        require_reader(&caller)?;
        let (store, task) = self.find_task_of_caller(&caller, &request.name).await?;
        Ok(Response::new(if reads_any_store(&caller) {
            self.record_read(&caller, Some(store.id), &request.name);
            messages::task_with_place(task, &store)
        } else {
            messages::task(task, &store)
        }))
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
        let audited = request.extensions().get::<Arc<Caller>>().cloned();
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
        if let Some(caller) = audited {
            self.record_read(&caller, None, Collection::Tasks.segment());
        }

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
    /// A task that a caller may read, and its store: of a shop one of its own, of a courier one in its lists, of
    /// others any.
    pub(in crate::services) async fn find_task_of_caller<'c>(
        &self,
        caller: &'c Caller,
        name: &str,
    ) -> Result<(Cow<'c, Store>, Task), Error> {
        if !reads_any_store(caller) {
            let store = caller.store()?;
            let find = |id| storage::tasks::find(&self.storage, store.id, TaskId(id));
            let task = messages::find_resource(Collection::Tasks, name, find).await?;
            return Ok((Cow::Borrowed(store), task));
        }
        let (store, task) = self.find_any_task(name).await?;
        let today = self.today();
        let courier = caller.courier().map(|id| Worker::Courier { id, today });
        if courier.is_some_and(|courier| !courier.has(&task)) {
            return Err(Error::NotFound(name.to_owned()));
        }
        Ok((Cow::Owned(store), task))
    }

    pub(in crate::services) async fn find_any_task(
        &self,
        name: &str,
    ) -> Result<(Store, Task), Error> {
        let find = |id| storage::tasks::find_of_any_store(&self.storage, TaskId(id));
        messages::find_resource(Collection::Tasks, name, find).await
    }
}

/// Whether a caller reads tasks of any store.
pub(in crate::services) fn reads_any_store(caller: &Caller) -> bool {
    caller.has(Scope::TasksAll) || caller.has(Scope::DispatchRead) || caller.courier().is_some()
}

/// Fails unless a caller reads tasks.
fn require_reader(caller: &Caller) -> Result<(), Error> {
    if reads_any_store(caller) {
        Ok(())
    } else {
        caller.require(Scope::Tasks)
    }
}
