//! Deliveries: exactly a pickup and a dropoff, and what completing or cancelling
//! them means.

use jiff::Timestamp;

use crate::{
    id::{DeliveryId, StoreId, TaskId, TimeSlotId},
    money::Price,
    task::{Task, TaskKind, TaskPlan, TaskState, TimeWindow},
};

/// The way from the pickup to the dropoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub meters: u32,
    pub seconds: u32,
    pub source: DistanceSource,
}

/// Who says how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceSource {
    /// An estimate.
    StraightLine,
    /// A server that knows the streets.
    Osrm,
}

/// What a delivery asks for, all checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryPlan {
    pub pickup: TaskPlan,
    pub dropoff: TaskPlan,
    pub route: Route,
}

/// A place in a slot of limited capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    pub time_slot_id: TimeSlotId,
    /// The slot itself; the task's own window may begin later.
    pub window: TimeWindow,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub store_id: StoreId,
    pub pickup: Task,
    pub dropoff: Task,
    pub route: Route,
    pub price: Option<Price>,
    /// The name of the promise it is charged by, if the price was promised.
    pub retail_price: Option<String>,
    /// The place its dropoff took, if places are counted; a cancelled delivery has given it back.
    pub booking: Option<Booking>,
    pub created_at: Timestamp,
    pub cancelled_at: Option<Timestamp>,
    /// What the store calls it; no two of a store's have the same.
    pub external_reference: Option<String>,
}

/// What the completion of a task or a cancellation brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `delivery.picked`: the pickup is done.
    Picked,
    /// `delivery.completed`: both tasks are done.
    Completed,
    /// `delivery.cancelled`: it will not happen.
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteTaskError {
    #[error("the delivery has no such task")]
    NoSuchTask,
    #[error("the delivery is cancelled")]
    Cancelled,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CancelError {
    #[error("a task of the delivery is done, so it can no longer be cancelled")]
    TaskDone,
}

impl Delivery {
    /// A new delivery, both its tasks to be done.
    pub fn new(
        store_id: StoreId,
        plan: DeliveryPlan,
        price: Option<Price>,
        now: Timestamp,
    ) -> Self {
        let id = DeliveryId::new();
        let task = |kind, plan| Task {
            id: TaskId::new(),
            delivery_id: id,
            kind,
            state: TaskState::Todo,
            plan,
            created_at: now,
            updated_at: now,
            cancelled_at: None,
        };
        Self {
            id,
            store_id,
            pickup: task(TaskKind::Pickup, plan.pickup),
            dropoff: task(TaskKind::Dropoff, plan.dropoff),
            route: plan.route,
            price,
            retail_price: None,
            booking: None,
            created_at: now,
            cancelled_at: None,
            external_reference: None,
        }
    }

    /// Completes one of the tasks and tells what that brought about: nothing if the task was
    /// done already. Either task may come first.
    pub fn complete_task(
        &mut self,
        task_id: TaskId,
        now: Timestamp,
    ) -> Result<Vec<Event>, CompleteTaskError> {
        let task = [&mut self.pickup, &mut self.dropoff]
            .into_iter()
            .find(|task| task.id == task_id)
            .ok_or(CompleteTaskError::NoSuchTask)?;
        match task.state {
            TaskState::Done { .. } => return Ok(Vec::new()),
            TaskState::Todo if self.cancelled_at.is_some() => {
                return Err(CompleteTaskError::Cancelled);
            }
            TaskState::Todo => {}
        }

        task.state = TaskState::Done { completed_at: now };
        task.updated_at = now;

        let picked = (task.kind == TaskKind::Pickup).then_some(Event::Picked);
        let completed = self.is_completed().then_some(Event::Completed);
        Ok(picked.into_iter().chain(completed).collect())
    }

    /// Cancels it with both its tasks and tells what that brought about: nothing if it was
    /// cancelled already. What is done cannot be undone. Tasks keep their state.
    pub fn cancel(&mut self, now: Timestamp) -> Result<Option<Event>, CancelError> {
        if self.cancelled_at.is_some() {
            return Ok(None);
        }
        let tasks = [&mut self.pickup, &mut self.dropoff];
        if tasks.iter().any(|task| task.state != TaskState::Todo) {
            return Err(CancelError::TaskDone);
        }

        for task in tasks {
            task.cancelled_at = Some(now);
            task.updated_at = now;
        }
        self.cancelled_at = Some(now);
        Ok(Some(Event::Cancelled))
    }

    /// Whether both tasks are done.
    pub fn is_completed(&self) -> bool {
        [&self.pickup, &self.dropoff]
            .into_iter()
            .all(|task| matches!(task.state, TaskState::Done { .. }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{
        address::{Address, LatLng},
        id::AddressId,
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn delivery() -> Delivery {
        let task = TaskPlan {
            address: Address {
                id: AddressId::new(),
                street_address: "24 Rue de la Paix, 75002 Paris".to_owned(),
                lat_lng: LatLng::new(48.8695, 2.3312).unwrap(),
                place_name: None,
                contact_name: None,
                telephone: None,
                description: None,
                postal_code: None,
                locality: None,
                country: None,
            },
            window: TimeWindow {
                after: at(1000),
                before: at(2000),
            },
            time_slot: false,
            comments: String::new(),
            weight: None,
            packages: Vec::new(),
            tags: Vec::new(),
            metadata: BTreeMap::new(),
        };
        let plan = DeliveryPlan {
            pickup: task.clone(),
            dropoff: task,
            route: Route {
                meters: 1000,
                seconds: 240,
                source: DistanceSource::StraightLine,
            },
        };
        Delivery::new(StoreId::new(), plan, None, at(0))
    }

    #[test]
    fn a_delivery_is_cancelled_once_with_both_its_tasks() {
        let mut cancelled = delivery();
        let mut expected = cancelled.clone();
        expected.cancelled_at = Some(at(1));
        for task in [&mut expected.pickup, &mut expected.dropoff] {
            task.cancelled_at = Some(at(1));
            task.updated_at = at(1);
        }

        assert_eq!(cancelled.cancel(at(1)), Ok(Some(Event::Cancelled)));
        assert_eq!(cancelled, expected);
        assert_eq!(cancelled.cancel(at(2)), Ok(None));
        for task_id in [expected.pickup.id, expected.dropoff.id] {
            assert_eq!(
                cancelled.complete_task(task_id, at(2)),
                Err(CompleteTaskError::Cancelled)
            );
        }
        assert_eq!(cancelled, expected);
    }

    #[test]
    fn a_delivery_with_a_done_task_is_not_cancelled() {
        for is_begun_by_its_dropoff in [false, true] {
            let mut begun = delivery();
            let task_id = if is_begun_by_its_dropoff {
                begun.dropoff.id
            } else {
                begun.pickup.id
            };
            begun.complete_task(task_id, at(1)).unwrap();
            let before = begun.clone();

            assert_eq!(begun.cancel(at(2)), Err(CancelError::TaskDone));
            assert_eq!(begun, before);
        }
    }

    #[test]
    fn a_delivery_is_completed_by_its_second_task() {
        let mut delivery = delivery();
        let (pickup, dropoff) = (delivery.pickup.id, delivery.dropoff.id);

        assert_eq!(delivery.complete_task(dropoff, at(1)), Ok(vec![]));
        assert_eq!(
            delivery.complete_task(pickup, at(2)),
            Ok(vec![Event::Picked, Event::Completed])
        );
        assert_eq!(delivery.complete_task(pickup, at(3)), Ok(vec![]));
        assert!(delivery.is_completed());
    }
}
