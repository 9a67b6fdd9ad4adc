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
    /// Its type, such as `XL`.
    pub kind: String,
    /// At least 1.
    pub quantity: u32,
}

/// What a task is about, besides its place and time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskDetails {
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
    pub address: Address,
    pub window: TimeWindow,
    /// Whether the request gave the window as `timeSlot`.
    pub has_time_slot: bool,
    pub details: TaskDetails,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub cancelled_at: Option<Timestamp>,
}

impl Task {
    pub fn is_done(&self) -> bool {
        self.state != TaskState::Todo
    }

    /// Removes personal data: keeps what accounting needs.
    pub fn erase(&mut self) {
        self.address.erase();
        self.details = TaskDetails {
            weight: self.details.weight,
            packages: std::mem::take(&mut self.details.packages),
            ..TaskDetails::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{address::LatLng, fixture, id::AddressId};

    #[test]
    fn an_erased_task_keeps_what_accounting_needs() {
        let text = || "Zoé".to_owned();
        let address = |street: &str, latitude, longitude, text: Option<String>| Address {
            id: AddressId(uuid::Uuid::nil()),
            street_address: street.to_owned(),
            lat_lng: LatLng::new(latitude, longitude).unwrap(),
            place_name: text.clone(),
            contact_name: text.clone(),
            telephone: text.clone(),
            description: text,
            postal_code: Some("1000".to_owned()),
            locality: Some("Town".to_owned()),
            country: Some("CL".to_owned()),
        };
        let mut task = Task {
            address: address("24 Calle Larga", -33.448_751, 2.331_249, Some(text())),
            has_time_slot: true,
            details: TaskDetails {
                comments: text(),
                weight: Some(1200),
                packages: vec![Package {
                    kind: "XL".to_owned(),
                    quantity: 2,
                }],
                tags: vec![text()],
                metadata: [(text(), text())].into(),
            },
            ..fixture::delivery(1000).pickup
        };
        let expected = Task {
            address: address("(erased)", -33.45, 2.33, None),
            details: TaskDetails {
                comments: String::new(),
                tags: Vec::new(),
                metadata: BTreeMap::new(),
                ..task.details.clone()
            },
            ..task.clone()
        };

        task.erase();

        assert_eq!(task, expected);
        task.erase();
        assert_eq!(task, expected, "erased twice");
    }
}
