//! Tasks: read by shops, completed by couriers.

use std::sync::Arc;

use domain::{
    api_client::Scope,
    delivery::CompleteTaskError,
    id::{StoreId, TaskId},
    store::Store,
    task::Task,
};
use proto::iri::Collection;
use storage::notifications::DeliveryChange;
use tonic::{Request, Response};

use super::{Reply, Services};
use crate::{auth::caller::Caller, error::Error, messages};

#[tonic::async_trait]
impl proto::tasks_server::Tasks for Services {
    async fn get_task(&self, request: Request<proto::GetTaskRequest>) -> Reply<proto::Task> {
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
    ) -> Reply<proto::Task> {
        let (_, request) = Caller::with_scope(request, Scope::TasksAll)?;

        let name = request.name;
        let (store, task) = self.find_any_task(&name).await?;
        let task = if task.is_done() {
            task
        } else {
            self.write_completion(&task, store.id).await?
        };

        Ok(Response::new(messages::task(task, &store)))
    }
}

impl Services {
    /// Completes a task. The same transaction writes its events and enqueues their notifications.
    async fn write_completion(&self, task: &Task, store_id: StoreId) -> Result<Task, Error> {
        let (task_id, delivery_id, now) = (task.id, task.delivery_id, self.clock.now());
        let streams = Arc::clone(&self.streams);
        let (delivery, pending_dispatch) = self
            .storage
            .write(move |transaction| async move {
                // The lock serializes completions of one delivery, so that the second one
                // sees the first.
                let mut delivery =
                    storage::deliveries::find_and_lock(&transaction, store_id, delivery_id)
                        .await?
                        .ok_or_else(|| not_found(task_id))?;
                let completed = delivery.complete_task(task_id, now);
                let Some(events) = completed.map_err(|error| complete_error(&error, task_id))?
                else {
                    return Ok::<_, Error>((delivery, None));
                };
                let change = DeliveryChange {
                    store_id,
                    delivery_id,
                    changes: storage::deliveries::completion(&delivery, task_id, now)?,
                    events,
                };
                let pending_dispatch = streams.enqueue(&transaction, change, now).await?;
                Ok((delivery, Some(pending_dispatch)))
            })
            .await?;
        let is_completed = delivery.is_completed();
        let task = if delivery.pickup.id == task_id {
            delivery.pickup
        } else {
            delivery.dropoff
        };
        if let Some(pending_dispatch) = pending_dispatch {
            self.metrics.count_completed_task(task.kind);
            if is_completed {
                self.metrics.deliveries_completed.inc();
            }
            self.streams.dispatch(pending_dispatch);
        }
        Ok(task)
    }

    async fn find_own_task(&self, caller: &Caller, name: &str) -> Result<Task, Error> {
        let store = caller.store()?;
        let find = |id| storage::deliveries::find_task(&self.storage, store.id, TaskId(id));
        messages::find_resource(Collection::Tasks, name, find).await
    }

    async fn find_any_task(&self, name: &str) -> Result<(Store, Task), Error> {
        let find = |id| storage::deliveries::find_task_of_any_store(&self.storage, TaskId(id));
        messages::find_resource(Collection::Tasks, name, find).await
    }
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
