//! Tasks: a pickup or a dropoff.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    address::Address,
    id::{DeliveryId, TaskId},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    Pickup,
    Dropoff,
}

/// A task's state (specification, "States and transitions").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    Todo,
    Done { completed_at: Timestamp },
}

/// When a task is to be done: after one instant and before a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeWindow {
    pub after: Timestamp,
    pub before: Timestamp,
}

/// Packages of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    pub kind: String,
    /// At least 1.
    pub quantity: u32,
}

/// A validated request for a task, ready to be priced or stored.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskPlan {
    pub address: Address,
    pub window: TimeWindow,
    /// Whether the window was requested as a time slot.
    pub is_time_slot: bool,
    pub comments: String,
    /// Grams.
    pub weight: Option<i64>,
    pub packages: Vec<Package>,
    pub tags: Vec<String>,
    pub metadata: BTreeMap<String, String>,
}

/// A task of a delivery.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub delivery_id: DeliveryId,
    pub kind: TaskKind,
    pub state: TaskState,
    pub plan: TaskPlan,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub cancelled_at: Option<Timestamp>,
}
