//! Deliveries: one pickup and one dropoff, and the rules for completing and cancelling them.

use jiff::Timestamp;

use crate::{
    event::EventName,
    id::{DeliveryId, StoreId, TaskId, TimeSlotId},
    money::Price,
    task::{Task, TaskKind, TaskState, TimeWindow},
};

/// The route from the pickup to the dropoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub distance_meters: u32,
    pub duration_seconds: u32,
    pub source: DistanceSource,
}

impl Route {
    /// A route in whole metres and seconds, with saturation.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, as documented"
    )]
    pub fn rounded(meters: f64, seconds: f64, source: DistanceSource) -> Self {
        Self {
            distance_meters: meters.round() as u32,
            duration_seconds: seconds.round() as u32,
            source,
        }
    }
}

/// The origin of a route's distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DistanceSource {
    /// An estimate from the great-circle distance.
    StraightLine,
    /// The router.
    Osrm,
}

/// A booking of a time slot with limited capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booking {
    pub time_slot_id: TimeSlotId,
    /// The slot's window; the task's window may start later.
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
    /// The name of the quote that sets its price, if any.
    pub retail_price: Option<String>,
    /// The booking of its dropoff's slot; none without a slot or without a limited capacity. Kept
    /// when the delivery is cancelled: the caller of [`Delivery::cancel`] releases it in storage.
    pub booking: Option<Booking>,
    pub created_at: Timestamp,
    pub cancelled_at: Option<Timestamp>,
    /// The store's own identifier, unique per store.
    pub external_reference: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteTaskError {
    #[error("the delivery has no such task")]
    NoSuchTask,
    #[error("the delivery is cancelled")]
    Cancelled,
}

/// Why a delivery cannot be cancelled.
const TASK_DONE: &str = "a task of the delivery is done, so it can no longer be cancelled";

impl Delivery {
    /// Completes one of the tasks, in any order, and returns the resulting events: of the pickup,
    /// and of the delivery once both are done. `None` if the task was already done.
    pub fn complete_task(
        &mut self,
        task_id: TaskId,
        now: Timestamp,
    ) -> Result<Option<Vec<EventName>>, CompleteTaskError> {
        let (task, other) = if self.pickup.id == task_id {
            (&mut self.pickup, &self.dropoff)
        } else if self.dropoff.id == task_id {
            (&mut self.dropoff, &self.pickup)
        } else {
            return Err(CompleteTaskError::NoSuchTask);
        };
        if task.is_done() {
            return Ok(None);
        }
        if self.cancelled_at.is_some() {
            return Err(CompleteTaskError::Cancelled);
        }
        task.state = TaskState::Done { completed_at: now };
        task.updated_at = now;
        let picked = (task.kind == TaskKind::Pickup).then_some(EventName::DeliveryPicked);
        let completed = other.is_done().then_some(EventName::DeliveryCompleted);
        Ok(Some(picked.into_iter().chain(completed).collect()))
    }

    /// Cancels the delivery with both tasks and returns the resulting event: none if it was already
    /// cancelled. Fails if a task is done. Tasks keep their state.
    pub fn cancel(&mut self, now: Timestamp) -> Result<Option<EventName>, &'static str> {
        if self.cancelled_at.is_some() {
            return Ok(None);
        }
        let tasks = [&mut self.pickup, &mut self.dropoff];
        if tasks.iter().any(|task| task.state != TaskState::Todo) {
            return Err(TASK_DONE);
        }

        for task in tasks {
            task.cancelled_at = Some(now);
            task.updated_at = now;
        }
        self.cancelled_at = Some(now);
        Ok(Some(EventName::DeliveryCancelled))
    }

    /// Whether both tasks are done.
    pub fn is_completed(&self) -> bool {
        self.pickup.is_done() && self.dropoff.is_done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn delivery() -> Delivery {
        fixture::delivery(1000)
    }

    #[test]
    fn a_route_is_rounded_and_saturates() {
        for (quantity, expected) in [(0.4, 0), (0.5, 1), (1e30, u32::MAX), (-1.0, 0)] {
            let route = Route::rounded(quantity, 7.0, DistanceSource::Osrm);
            assert_eq!(
                (route.distance_meters, route.duration_seconds),
                (expected, 7)
            );
            let route = Route::rounded(7.0, quantity, DistanceSource::Osrm);
            assert_eq!(
                (route.distance_meters, route.duration_seconds),
                (7, expected)
            );
        }
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

        assert_eq!(
            cancelled.cancel(at(1)),
            Ok(Some(EventName::DeliveryCancelled))
        );
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
        for is_dropoff_done in [false, true] {
            let mut started = delivery();
            let task_id = if is_dropoff_done {
                started.dropoff.id
            } else {
                started.pickup.id
            };
            started.complete_task(task_id, at(1)).unwrap();
            let before = started.clone();

            assert_eq!(started.cancel(at(2)), Err(TASK_DONE));
            assert_eq!(started, before);
        }
    }

    #[test]
    fn a_delivery_is_completed_by_its_second_task() {
        let mut delivery = delivery();
        let (pickup, dropoff) = (delivery.pickup.id, delivery.dropoff.id);

        assert_eq!(delivery.complete_task(dropoff, at(1)), Ok(Some(vec![])));
        assert_eq!(
            delivery.complete_task(pickup, at(2)),
            Ok(Some(vec![
                EventName::DeliveryPicked,
                EventName::DeliveryCompleted
            ]))
        );
        assert_eq!(delivery.complete_task(pickup, at(3)), Ok(None));
        assert!(delivery.is_completed());
    }
}
