//! The lists of couriers: read with their etags, replaced together, and changed task by task.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    courier::ListKey,
    courier_lists::{self, Lists, Places, RequestedList, Target},
    device_clock::DeviceTimes,
    id::{CourierId, StoreId, TaskId},
    task::{Actor, Task},
    task_event::{Remarks, TaskReport},
    violation::Violations,
};
use jiff::civil::Date;
use proto::iri::Collection;
use storage::{
    Session,
    courier_lists::{Change, Selection},
};
use tonic::Response;

use super::requests::{read_lists, read_moves};
use crate::{
    auth::{audit::Audit, caller::Caller},
    error::{ChangedList, Error},
    idempotency::begin_or_replay,
    messages,
    services::{
        Services,
        delivery_changes::{DeliveryWriter, WrittenEvents},
    },
};

impl Services {
    pub(super) async fn read_lists(
        &self,
        day: &str,
    ) -> Result<proto::ListCourierListsResponse, Error> {
        let mut violations = Violations::new();
        let day = messages::read_day(day, self.today(), &mut violations);
        Error::check(violations)?;
        // Read before the lists: a watch from here misses no change of them.
        let position = self.change_position().await?;
        let reader = self.storage.reader();
        let tasks = storage::courier_lists::tasks(reader, &Selection::Day(day)).await?;
        let changes = storage::courier_lists::of_day(reader, day).await?;
        let orders = courier_lists::orders(tasks.iter().map(|(_, task)| task));
        let lists = orders
            .iter()
            .map(|(list, order)| messages::courier_list(*list, order, changes.get(list)));
        Ok(proto::ListCourierListsResponse {
            day: day.to_string(),
            lists: lists.collect(),
            empty_etag: courier_lists::etag(&[]),
            position,
        })
    }

    pub(super) async fn replace_lists(
        &self,
        caller: &Caller,
        request: proto::SetCourierListsRequest,
    ) -> Result<Response<proto::SetCourierListsResponse>, Error> {
        let (rpc, idempotency) = ("SetCourierLists", request.idempotency.clone());
        let request_key = begin_or_replay!(self, caller, rpc, "", idempotency);
        let (day, requested) = read_lists(&request, self.today())?;
        let keys: BTreeSet<_> = requested.iter().map(|list| list.key).collect();
        let named = requested.iter().flat_map(|list| list.tasks.iter().copied());
        let named: BTreeSet<_> = named.collect();
        let couriers = keys.iter().map(|list| list.courier_id).collect();
        let known = storage::couriers::find_all(self.storage.reader(), &couriers).await?;
        let unknown = |list: &&RequestedList| !known.contains_key(&list.key.courier_id);
        if let Some(list) = requested.iter().find(unknown) {
            let name = Collection::Couriers.name(list.key.courier_id);
            return Err(Error::NotFound(name));
        }

        let writer = ListWriter::new(self, caller);
        let write = self
            .idempotency
            .write_with(request_key, move |transaction| async move {
                let replace = |lists: &Lists| {
                    let places = lists.replace(&requested);
                    Ok((places.map_err(|changed| lists_changed(&changed))?, ()))
                };
                let written = writer.write(&transaction, &keys, &named, replace).await?;
                let changes = storage::courier_lists::of_day(&transaction, day).await?;
                let lists = requested
                    .iter()
                    .map(|list| written.list(list.key, changes.get(&list.key)));
                let lists = lists.collect();
                Ok((proto::SetCourierListsResponse { lists }, written.events))
            });
        let (response, events) = match write.await {
            Err(Error::ListsChanged(lists)) => return Err(self.with_changes(lists).await?),
            written => written?,
        };
        events
            .into_iter()
            .flatten()
            .for_each(|events| self.dispatch(events));
        Ok(response)
    }

    /// The refusal with who changed the lists last. To be called after the transaction, which has made those that were not
    /// there.
    async fn with_changes(&self, mut lists: Vec<ChangedList>) -> Result<Error, Error> {
        let mut changes = BTreeMap::new();
        let days = lists.iter().map(|changed| changed.list.day);
        for day in days.collect::<BTreeSet<_>>() {
            changes.extend(storage::courier_lists::of_day(self.storage.reader(), day).await?);
        }
        for changed in &mut lists {
            changed.change = changes.remove(&changed.list);
        }
        Ok(Error::ListsChanged(lists))
    }

    pub(super) async fn move_tasks(
        &self,
        caller: &Caller,
        request: proto::AssignTasksRequest,
    ) -> Result<Response<proto::AssignTasksResponse>, Error> {
        let (rpc, idempotency) = ("AssignTasks", request.idempotency.clone());
        let request_key = begin_or_replay!(self, caller, rpc, "", idempotency);
        let today = self.today();
        let zone = self.config.platform.timezone.clone();
        let (moves, day) = read_moves(&request, today)?;
        let display_name = request.courier_display_name.trim();
        let courier_id = if !request.courier.is_empty() {
            Some(self.find_courier(&request.courier).await?.id)
        } else if !display_name.is_empty() {
            Some(self.find_named_courier(display_name).await?.id)
        } else {
            None
        };
        let target = Target {
            courier_id,
            day,
            position: request.position.map(to_index),
            is_single: request.single,
        };
        let named: BTreeSet<_> = moves.iter().map(|of| of.task).collect();
        let reader = self.storage.reader();
        let tasks = storage::courier_lists::tasks(reader, &Selection::Tasks(named.clone())).await?;
        let keys: BTreeSet<_> = tasks
            .iter()
            .flat_map(|(_, task)| {
                let current = task.place.map(|place| place.list);
                [current, target.list_of(task, today, &zone)]
            })
            .flatten()
            .collect();

        let writer = ListWriter::new(self, caller);
        let write = self
            .idempotency
            .write_with(request_key, move |transaction| async move {
                let assign = |lists: &Lists| {
                    let list_of = |task: &_| target.list_of(task, today, &zone);
                    Ok(lists.assign(&moves, &target, list_of))
                };
                let written = writer.write(&transaction, &keys, &named, assign).await?;
                let conflicts = written.outcome.iter();
                let lists = written.changed.iter();
                let response = proto::AssignTasksResponse {
                    conflicts: conflicts.map(|task| Collection::Tasks.name(task)).collect(),
                    lists: lists
                        .map(|list| (list.day, written.list(*list, Some(&writer.change))))
                        .map(|(day, list)| proto::DayList {
                            day: day.to_string(),
                            list: Some(list),
                        })
                        .collect(),
                };
                Ok((response, written.events))
            });
        let (response, events) = write.await?;
        events
            .into_iter()
            .flatten()
            .for_each(|events| self.dispatch(events));
        Ok(response)
    }

    pub(in crate::services) fn today(&self) -> Date {
        let zone = self.config.platform.timezone.clone();
        self.clock.now().to_zoned(zone).date()
    }
}

/// Changes lists within a transaction.
#[derive(Clone)]
struct ListWriter {
    deliveries: DeliveryWriter,
    change: Change,
    audit: Audit,
}

impl ListWriter {
    fn new(services: &Services, caller: &Caller) -> Self {
        let by = caller.id;
        let report = TaskReport {
            by: Actor::Dispatch,
            api_client_id: by,
            courier_id: None,
            times: DeviceTimes::default(),
            remarks: Remarks::default(),
        };
        let zone = services.config.platform.timezone.clone();
        Self {
            deliveries: DeliveryWriter::new(services, zone, report),
            change: Change {
                at: services.clock.now(),
                by,
            },
            audit: caller.audit.clone(),
        }
    }

    /// Locks the lists, and then the deliveries of their tasks and of the named ones, and gives tasks the places that
    /// `decide` returns.
    async fn write<T>(
        &self,
        transaction: &Session,
        lists: &BTreeSet<ListKey>,
        named: &BTreeSet<TaskId>,
        decide: impl FnOnce(&Lists) -> Result<(Places, T), Error>,
    ) -> Result<Written<T>, Error> {
        storage::courier_lists::lock(transaction, lists, &self.change).await?;
        let mut tasks = read_tasks(transaction, lists, named).await?;
        let deliveries = tasks.iter().map(|(store, task)| (*store, task.delivery_id));
        let deliveries: BTreeSet<_> = deliveries.collect();
        if storage::courier_lists::lock_deliveries(transaction, &deliveries).await? {
            // Only now they cannot change.
            tasks = read_tasks(transaction, lists, named).await?;
        }
        let known: BTreeSet<_> = tasks.iter().map(|(_, task)| task.id).collect();
        if let Some(missing) = named.difference(&known).next() {
            return Err(Error::NotFound(Collection::Tasks.name(missing)));
        }
        let found = tasks.iter().map(|(_, task)| task.clone());
        let current = Lists::new(lists.iter().copied(), found);
        let (places, outcome) = decide(&current)?;
        let receivers = current.receivers(&places);
        let couriers = storage::couriers::find_all_and_lock(transaction, &receivers).await?;
        for id in receivers {
            let courier = couriers.get(&id);
            if courier.is_none_or(|courier| courier.disabled_at.is_some()) {
                return Err(courier_disabled(id));
            }
        }

        let (mut changed, mut deliveries) = (BTreeSet::new(), BTreeSet::new());
        let mut audited = BTreeSet::new();
        for (store, task) in tasks
            .iter()
            .filter(|(_, task)| places.contains_key(&task.id))
        {
            let new = places.get(&task.id).copied().flatten();
            let places = [task.place, new].into_iter().flatten();
            changed.extend(places.map(|place| place.list));
            deliveries.insert((*store, task.delivery_id));
            audited.insert((Some(*store), Collection::Tasks.name(task.id)));
        }
        let place = self.deliveries.place(transaction, &deliveries, &places);
        let events = place.await?;
        if events.is_some() {
            let couriers = changed.iter().map(|list| list.courier_id);
            audited.extend(couriers.map(|id| (None, Collection::Couriers.name(id))));
            self.audit.record_all(transaction, audited).await?;
        }
        storage::courier_lists::record_change(transaction, &changed, &self.change).await?;
        Ok(Written {
            orders: current.orders_with(&places),
            changed,
            outcome,
            events,
        })
    }
}

/// What a change of lists has done.
struct Written<T> {
    /// Of the locked lists, as they are now.
    orders: BTreeMap<ListKey, Vec<TaskId>>,
    changed: BTreeSet<ListKey>,
    outcome: T,
    /// None if nothing changed.
    events: Option<WrittenEvents>,
}

impl<T> Written<T> {
    fn list(&self, list: ListKey, change: Option<&Change>) -> proto::CourierList {
        let order = self.orders.get(&list).map_or(&[][..], Vec::as_slice);
        messages::courier_list(list, order, change)
    }
}

/// The tasks of lists, and the named ones with the others of their deliveries, each once.
async fn read_tasks(
    transaction: &Session,
    lists: &BTreeSet<ListKey>,
    named: &BTreeSet<TaskId>,
) -> Result<Vec<(StoreId, Task)>, Error> {
    let mut tasks = BTreeMap::new();
    for selection in [
        Selection::Lists(lists.clone()),
        Selection::Tasks(named.clone()),
    ] {
        let found = storage::courier_lists::tasks(transaction, &selection).await?;
        tasks.extend(
            found
                .into_iter()
                .map(|(store, task)| (task.id, (store, task))),
        );
    }
    Ok(tasks.into_values().collect())
}

fn to_index(position: u32) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

fn courier_disabled(id: CourierId) -> Error {
    let courier = Collection::Couriers.name(id);
    let message = format!("{courier} is disabled, and gets no more tasks");
    Error::Conflict("COURIER_DISABLED", message)
}

fn lists_changed(changed: &BTreeSet<ListKey>) -> Error {
    let lists = changed.iter().map(|list| ChangedList {
        list: *list,
        change: None,
    });
    Error::ListsChanged(lists.collect())
}
