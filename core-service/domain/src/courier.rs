//! Couriers, and the place of a task in the list of one of them.

use jiff::{Timestamp, civil::Date};

use crate::id::CourierId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Courier {
    pub id: CourierId,
    pub display_name: String,
    pub telephone: Option<String>,
    pub created_at: Timestamp,
    /// A disabled courier keeps its lists and gets no more tasks.
    pub disabled_at: Option<Timestamp>,
}

/// The list of a courier on a day of the platform. Lists are locked in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListKey {
    pub day: Date,
    pub courier_id: CourierId,
}

/// A task's place. No two tasks of a list have the same position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub list: ListKey,
    /// From 0.
    pub position: u32,
}
