//! Who changes and reads tasks: dispatch all of them, a courier those in its lists.

use domain::{
    api_client::Scope,
    id::{CourierId, TaskId},
    store::Store,
    task::{Actor, Task},
};
use jiff::civil::Date;
use proto::iri::Collection;

use crate::{auth::caller::Caller, error::Error, messages, services::Services};

/// For whom a caller changes tasks.
#[derive(Clone, Copy, Debug)]
pub(in crate::services) enum Worker {
    Dispatch,
    Courier { id: CourierId, today: Date },
}

impl Worker {
    pub(in crate::services) const fn actor(self) -> Actor {
        match self {
            Self::Dispatch => Actor::Dispatch,
            Self::Courier { .. } => Actor::Courier,
        }
    }

    /// Whether it may change a task that is where it is now.
    pub(in crate::services) fn has(self, task: &Task) -> bool {
        match self {
            Self::Dispatch => true,
            Self::Courier { id, today } => task
                .place
                .is_some_and(|place| place.list.courier_id == id && place.list.is_worked_on(today)),
        }
    }
}

impl Services {
    /// For whom a caller changes tasks. Programs of scope `tasks:all` act for dispatch, if they may act at all.
    pub(in crate::services) fn worker(
        &self,
        caller: &Caller,
        scope: Scope,
    ) -> Result<Worker, Error> {
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
        let find = |id| storage::deliveries::find_task(&self.storage, store.id, TaskId(id));
        messages::find_resource(Collection::Tasks, name, find).await
    }

    pub(in crate::services) async fn find_any_task(
        &self,
        name: &str,
    ) -> Result<(Store, Task), Error> {
        let find = |id| storage::deliveries::find_task_of_any_store(&self.storage, TaskId(id));
        messages::find_resource(Collection::Tasks, name, find).await
    }

    /// A task that a caller may read who is no shop: any, of couriers one in their lists.
    pub(in crate::services) async fn find_task_of_caller(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<(Store, Task), Error> {
        let (store, task) = self.find_any_task(name).await?;
        let courier = task.place.map(|place| place.list.courier_id);
        if caller.courier().is_some_and(|id| courier != Some(id)) {
            return Err(Error::NotFound(name.to_owned()));
        }
        Ok((store, task))
    }
}

/// Whether a caller reads tasks of any store.
pub(super) fn reads_any_store(caller: &Caller) -> bool {
    caller.has(Scope::TasksAll) || caller.has(Scope::DispatchRead) || caller.courier().is_some()
}
