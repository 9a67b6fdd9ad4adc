//! Tasks: read by shops, completed by couriers.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    delivery::CompleteTaskError,
    id::{DeliveryId, StoreId, TaskId},
    store::Store,
    task::{Task, TaskKind, TaskState},
};
use process::clock::Clock;
use proto::iri::Collection;
use tonic::{Request, Response, Status};

use crate::{
    auth::caller::Caller,
    error::Error,
    messages::{self, lookup},
    metrics::Metrics,
    notifications::{PendingDispatch, Streams},
};

use storage::{Changes, Storage, completion::TaskToComplete};

pub(crate) struct Tasks {
    pub(crate) storage: Arc<Storage>,
    pub(crate) clock: Clock,
    pub(crate) streams: Arc<Streams>,
    pub(crate) metrics: Metrics,
}

#[tonic::async_trait]
impl proto::tasks_server::Tasks for Tasks {
    async fn get_task(
        &self,
        request: Request<proto::GetTaskRequest>,
    ) -> Result<Response<proto::Task>, Status> {
        let (caller, request) = Caller::of(request)?;
        let name = request.name;

        let reply = if caller.has(Scope::TasksAll) {
            let (store, task) = self.find_any_task(&name).await?;
            messages::task(task, &store)
        } else {
            caller.require(Scope::Tasks)?;
            let task = self.find_own_task(&caller, &name).await?;
            messages::task(task, caller.store()?)
        };

        Ok(Response::new(reply))
    }

    async fn complete_task(
        &self,
        request: Request<proto::CompleteTaskRequest>,
    ) -> Result<Response<proto::Task>, Status> {
        let (_, request) = Caller::with_scope(request, Scope::TasksAll)?;

        let name = request.name;
        let find = |id| storage::completion::find(&self.storage, TaskId(id));
        let found = lookup::resource((Collection::Tasks, &name), find).await?;
        let task = if found.task.is_done() {
            found.task
        } else if let Some(completed) = self.complete_without_notification(&found).await? {
            completed
        } else {
            let task = &found.task;
            self.complete(found.store.id, task.delivery_id, task.id)
                .await?
        };

        Ok(Response::new(messages::task(task, &found.store)))
    }
}

impl Tasks {
    /// Completes a task by one statement if no webhook is notified of it. Returns none, and changes
    /// nothing, if a transaction must complete it ([`storage::completion::complete`] says when).
    async fn complete_without_notification(
        &self,
        read: &TaskToComplete,
    ) -> Result<Option<Task>, Error> {
        let mut task = read.task.clone();
        let now = self.clock.now();
        let events = task.complete(read.other_is_done, now);
        if !storage::completion::complete(&self.storage, read, &events, now).await? {
            return Ok(None);
        }
        self.count_completed(task.kind, read.other_is_done);
        self.streams.dispatch(PendingDispatch::default());
        Ok(Some(task))
    }

    /// Completes a task. The same transaction writes its events and enqueues their notifications.
    async fn complete(
        &self,
        store_id: StoreId,
        delivery_id: DeliveryId,
        task_id: TaskId,
    ) -> Result<Task, Error> {
        let now = self.clock.now();
        let streams = Arc::clone(&self.streams);
        let (task, pending_dispatch, is_changed, is_completed) = self
            .storage
            .write(move |transaction| async move {
                // The lock serializes completions of one delivery, so that the second one
                // sees the first.
                let mut delivery =
                    storage::deliveries::find_and_lock(&transaction, store_id, delivery_id)
                        .await?
                        .ok_or_else(|| not_found(task_id))?;
                let is_to_do = state(&delivery, task_id) == Some(TaskState::Todo);
                let events = delivery
                    .complete_task(task_id, now)
                    .map_err(|error| complete_error(&error, task_id))?;

                let is_completed = delivery.is_completed();
                let task = if delivery.pickup.id == task_id {
                    &delivery.pickup
                } else {
                    &delivery.dropoff
                };
                let changes = if is_to_do {
                    storage::deliveries::completion(&delivery, task, now)?
                } else {
                    Changes::default()
                };
                let task = task.clone();
                let delivery_key = (store_id, delivery_id);
                let pending_dispatch = streams
                    .enqueue(&transaction, delivery_key, changes, &events, now)
                    .await?;
                Ok::<_, Error>((task, pending_dispatch, is_to_do, is_completed))
            })
            .await?;
        if is_changed {
            self.count_completed(task.kind, is_completed);
        }
        self.streams.dispatch(pending_dispatch);
        Ok(task)
    }

    fn count_completed(&self, kind: TaskKind, completes_delivery: bool) {
        self.metrics.count_completed_task(kind);
        if completes_delivery {
            self.metrics.deliveries_completed.inc();
        }
    }

    async fn find_own_task(&self, caller: &Caller, name: &str) -> Result<Task, Error> {
        let store = caller.store()?;
        let find = |id| storage::deliveries::find_task(&self.storage, store.id, TaskId(id));
        lookup::resource((Collection::Tasks, name), find).await
    }

    async fn find_any_task(&self, name: &str) -> Result<(Store, Task), Error> {
        let find = |id| storage::deliveries::find_task_of_any_store(&self.storage, TaskId(id));
        lookup::resource((Collection::Tasks, name), find).await
    }
}

fn state(delivery: &domain::delivery::Delivery, task_id: TaskId) -> Option<TaskState> {
    [&delivery.pickup, &delivery.dropoff]
        .into_iter()
        .find(|task| task.id == task_id)
        .map(|task| task.state)
}

fn complete_error(error: &CompleteTaskError, task_id: TaskId) -> Error {
    match error {
        CompleteTaskError::NoSuchTask => not_found(task_id),
        CompleteTaskError::Cancelled => Error::Conflict("DELIVERY_CANCELLED", error.to_string()),
    }
}

fn not_found(task_id: TaskId) -> Error {
    Error::NotFound(Collection::Tasks.name(task_id))
}
