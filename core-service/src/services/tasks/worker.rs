//! Who changes and reads tasks: dispatch all of them, a courier those in its lists.

use domain::{
    api_client::Scope,
    id::{CourierId, TaskId},
    lifecycle::Command,
    store::Store,
    task::Task,
    task_event::{TaskEvent, TransitionName},
    violation::Violations,
    worker::Worker,
};
use proto::iri::Collection;

use super::late::ReportedTask;
use crate::{auth::caller::Caller, error::Error, messages, services::Services};

/// The field of a report in which dispatch names the courier.
pub(super) const ON_BEHALF_OF: &str = "report.on_behalf_of";

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

    pub(in crate::services) async fn find_own_task(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Task, Error> {
        let store = caller.store()?;
        let find = |id| storage::tasks::find(&self.storage, store.id, TaskId(id));
        messages::find_resource(Collection::Tasks, name, find).await
    }

    pub(in crate::services) async fn find_any_task(
        &self,
        name: &str,
    ) -> Result<(Store, Task), Error> {
        let find = |id| storage::tasks::find_of_any_store(&self.storage, TaskId(id));
        messages::find_resource(Collection::Tasks, name, find).await
    }

    /// The newest completion of a task that a courier is to reopen.
    pub(super) async fn find_completion(
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

    /// A task that a caller may read who is no shop: any, of couriers one that is their own now.
    pub(in crate::services) async fn find_task_of_caller(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(Store, Task), Error> {
        let (store, task) = self.find_any_task(name).await?;
        let today = self.today();
        let courier = caller.courier().map(|id| Worker::Courier { id, today });
        if courier.is_some_and(|courier| !courier.has(&task)) {
            return Err(Error::NotFound(name.to_owned()));
        }
        Ok((store, task))
    }
}

/// Whether a caller reads tasks of any store.
pub(in crate::services) fn reads_any_store(caller: &Caller) -> bool {
    caller.has(Scope::TasksAll) || caller.has(Scope::DispatchRead) || caller.courier().is_some()
}
