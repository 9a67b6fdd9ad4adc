//! Streams the tasks of all stores, and the lists of couriers, as they change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use domain::{
    api_client::Scope,
    courier::ListKey,
    courier_lists,
    event::LogBounds,
    id::{DeliveryId, IncidentId, StoreId},
};
use proto::iri::Collection;
use storage::{
    Storage,
    courier_lists::Selection,
    incidents,
    task_changes::{self, LoggedChange, Watched},
    task_lists::{self, CourierFilter, Filter, ListedTask},
};

use crate::{
    auth::caller::Caller,
    error::Error,
    messages,
    services::{
        feed::Log,
        incidents::{Reader, message},
    },
};

/// Fails unless the caller may see the tasks of all stores.
pub(super) fn authorize(caller: &Caller) -> Result<(), Error> {
    if caller.has(Scope::DispatchRead) {
        return Ok(());
    }
    caller.require(Scope::TasksAll)
}

pub(crate) struct TaskLog(pub(crate) Arc<Storage>);

/// A change of the log, with what changed as it is when the log is read.
pub(crate) struct Change {
    position: i64,
    content: Content,
    /// An incident that was reported or closed, with its task.
    incident: Option<(ListedTask, proto::Incident)>,
}

enum Content {
    /// Both tasks of a delivery.
    Tasks(Vec<ListedTask>),
    List(ListKey, proto::CourierList),
    /// A later change of the same batch has it.
    Repeated,
}

impl Log for TaskLog {
    type Entry = Change;

    /// The longest tasks of as many deliveries fit into a message of gRPC.
    const BATCH: usize = 32;
    /// Of the longest tasks, 32 MiB.
    const CAPACITY: usize = 8;
    const ENTRY: &'static str = "task change";
    const EXPIRED: &'static str = "POSITION_EXPIRED";

    fn position(change: &Change) -> i64 {
        change.position
    }

    async fn bounds(&self) -> Result<LogBounds, Error> {
        Ok(task_changes::bounds(self.0.reader()).await?)
    }

    async fn read(&self, after: i64) -> Result<Vec<Change>, Error> {
        let limit = Self::BATCH as u64;
        let logged = task_changes::list(self.0.reader(), after, limit).await?;
        let (mut deliveries, mut lists) = (BTreeSet::new(), BTreeSet::new());
        for logged in &logged {
            match logged.change {
                Watched::Delivery(store_id, id) => drop(deliveries.insert((store_id, id))),
                Watched::List(list) => drop(lists.insert(list)),
            }
        }
        let mut tasks = self.tasks(&deliveries).await?;
        let mut incidents = self.incidents(&logged, &tasks).await?;
        let mut lists = self.lists(lists).await?;
        let changes = logged.iter().rev().map(|logged| {
            let content = match logged.change {
                Watched::Delivery(store_id, id) => {
                    tasks.remove(&(store_id, id)).map(Content::Tasks)
                }
                Watched::List(list) => lists
                    .remove(&list)
                    .map(|message| Content::List(list, message)),
            };
            Change {
                position: logged.position,
                content: content.unwrap_or(Content::Repeated),
                incident: logged.incident.and_then(|id| incidents.remove(&id)),
            }
        });
        let mut changes: Vec<_> = changes.collect();
        changes.reverse();
        Ok(changes)
    }
}

impl TaskLog {
    async fn tasks(
        &self,
        deliveries: &BTreeSet<(StoreId, DeliveryId)>,
    ) -> Result<BTreeMap<(StoreId, DeliveryId), Vec<ListedTask>>, Error> {
        let deliveries: Vec<_> = deliveries.iter().copied().collect();
        let mut tasks = BTreeMap::<_, Vec<_>>::new();
        let mut found = task_lists::of_deliveries(self.0.reader(), &deliveries).await?;
        found.sort_unstable_by_key(|listed| (listed.task.window.before, listed.task.id));
        for listed in found {
            let key = (listed.store.id, listed.task.delivery_id);
            tasks.entry(key).or_default().push(listed);
        }
        Ok(tasks)
    }

    async fn incidents(
        &self,
        logged: &[LoggedChange],
        tasks: &BTreeMap<(StoreId, DeliveryId), Vec<ListedTask>>,
    ) -> Result<BTreeMap<IncidentId, (ListedTask, proto::Incident)>, Error> {
        let keys = logged.iter().filter_map(|logged| match logged.change {
            Watched::Delivery(store_id, _) => Some((store_id, logged.incident?)),
            Watched::List(_) => None,
        });
        let found = incidents::find_all(self.0.reader(), keys).await?;
        let with_task = found.into_iter().filter_map(|incident| {
            let of_delivery = tasks.get(&(incident.store_id, incident.delivery_id))?;
            let mut of_delivery = of_delivery.iter();
            let listed = of_delivery.find(|listed| listed.task.id == incident.task_id)?;
            Some((
                incident.id,
                (listed.clone(), message(incident, Reader::Dispatch)),
            ))
        });
        Ok(with_task.collect())
    }

    async fn lists(
        &self,
        lists: BTreeSet<ListKey>,
    ) -> Result<BTreeMap<ListKey, proto::CourierList>, Error> {
        let reader = self.0.reader();
        let mut changes = BTreeMap::new();
        for day in lists.iter().map(|list| list.day).collect::<BTreeSet<_>>() {
            changes.extend(storage::courier_lists::of_day(reader, day).await?);
        }
        let selection = Selection::Lists(lists.clone());
        let tasks = storage::courier_lists::tasks(reader, &selection).await?;
        let orders = courier_lists::orders(tasks.iter().map(|(_, task)| task));
        let message = |list: ListKey| {
            let order = orders.get(&list).map_or(&[][..], Vec::as_slice);
            let message = messages::courier_list(list, order, changes.get(&list));
            (list, message)
        };
        Ok(lists.into_iter().map(message).collect())
    }
}

/// What a watcher of the tasks that a filter lists gets of changes. `None` if it needs none of them.
pub(super) fn responder(
    filter: Filter,
    caller: &Caller,
) -> impl Fn(&[Change], i64) -> Option<proto::WatchTasksResponse> + use<> {
    let sees_incidents = caller.has(Scope::DispatchRead);
    move |changes, position| respond(&filter, sees_incidents, changes, position)
}

fn respond(
    filter: &Filter,
    sees_incidents: bool,
    changes: &[Change],
    position: i64,
) -> Option<proto::WatchTasksResponse> {
    let mut response = proto::WatchTasksResponse {
        position,
        ..Default::default()
    };
    for change in changes {
        let incident = change.incident.as_ref().filter(|_| sees_incidents);
        let incident = incident.filter(|(listed, _)| filter.has(listed));
        response
            .incidents
            .extend(incident.map(|(_, incident)| incident.clone()));
        match &change.content {
            Content::Tasks(tasks) => {
                for listed in tasks {
                    if filter.has(listed) {
                        response.tasks.push(messages::listed_task(listed.clone()));
                    } else {
                        response.left.push(Collection::Tasks.name(listed.task.id));
                    }
                }
            }
            Content::List(list, message) if has_list(filter, *list) => {
                response.lists.push(proto::DayList {
                    day: list.day.to_string(),
                    list: Some(message.clone()),
                });
            }
            Content::List(..) | Content::Repeated => {}
        }
    }
    // The first message and heartbeats are without changes.
    let is_needed = changes.is_empty()
        || !response.tasks.is_empty()
        || !response.left.is_empty()
        || !response.lists.is_empty()
        || !response.incidents.is_empty();
    is_needed.then_some(response)
}

fn has_list(filter: &Filter, list: ListKey) -> bool {
    let is_of_courier = match filter.courier {
        CourierFilter::Any => true,
        CourierFilter::None => false,
        CourierFilter::One(id) => list.courier_id == id,
    };
    is_of_courier && list.day == filter.list_day
}
