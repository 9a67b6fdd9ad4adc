//! Deliveries: exactly a pickup and a dropoff, and what completing them means.

use jiff::Timestamp;

use crate::domain::{
    id::{DeliveryId, StoreId, TaskId},
    money::Price,
    task::{Task, TaskKind, TaskPlan, TaskState},
};

/// The way from the pickup to the dropoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub meters: u32,
    pub seconds: u32,
}

/// What a delivery asks for, all checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryPlan {
    pub pickup: TaskPlan,
    pub dropoff: TaskPlan,
    pub route: Route,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub store_id: StoreId,
    pub pickup: Task,
    pub dropoff: Task,
    pub route: Route,
    pub price: Option<Price>,
    pub created_at: Timestamp,
    pub cancelled_at: Option<Timestamp>,
}

/// What the completion of a task brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// `delivery.picked`: the pickup is done.
    Picked,
    /// `delivery.completed`: both tasks are done.
    Completed,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompleteTaskError {
    #[error("the delivery has no such task")]
    NoSuchTask,
    #[error("the delivery is cancelled")]
    Cancelled,
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
            created_at: now,
            cancelled_at: None,
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

    /// Whether both tasks are done.
    pub fn is_completed(&self) -> bool {
        [&self.pickup, &self.dropoff]
            .into_iter()
            .all(|task| matches!(task.state, TaskState::Done { .. }))
    }
}
