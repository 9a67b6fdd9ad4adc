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

impl ListKey {
    /// Whether the courier works on its tasks on any of these days: on its own, and until the end of the next.
    pub fn is_worked_on(self, first: Date, last: Date) -> bool {
        self.day <= last && first <= self.day.tomorrow().unwrap_or(self.day)
    }
}

/// A task's place. No two tasks of a list have the same position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub list: ListKey,
    /// From 0.
    pub position: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_worked_on_for_two_days() {
        let list = ListKey {
            day: Date::constant(2026, 12, 1),
            courier_id: CourierId::new(),
        };
        let days =
            [30, 1, 2, 3].map(|day| Date::constant(2026, if day == 30 { 11 } else { 12 }, day));
        assert_eq!(
            days.map(|day| list.is_worked_on(day, day)),
            [false, true, true, false]
        );
    }
}
