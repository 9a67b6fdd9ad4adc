//! Tasks: a pickup or a dropoff.

use std::{collections::BTreeMap, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{
    address::Address,
    courier::Place,
    id::{DeliveryId, ImageId, TaskId},
    named_enum::named_enum,
};

named_enum! {
    pub enum TaskKind("kind", ", ") {
        Pickup = "pickup",
        Dropoff = "dropoff",
    }
}

/// A task's state. The specification ("States and transitions") names `Todo` and `Done` and leaves others
/// open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskState {
    Todo,
    /// A courier has started it.
    Doing,
    Done,
    Failed(FailureReason),
    Cancelled,
}

named_enum! {
    /// A task's state without what else is known of it.
    pub enum StateName("state", ", ") {
        Todo = "todo",
        Doing = "doing",
        Done = "done",
        Failed = "failed",
        Cancelled = "cancelled",
    }
}

impl TaskState {
    pub const fn name(&self) -> StateName {
        match self {
            Self::Todo => StateName::Todo,
            Self::Doing => StateName::Doing,
            Self::Done => StateName::Done,
            Self::Failed(_) => StateName::Failed,
            Self::Cancelled => StateName::Cancelled,
        }
    }
}

named_enum! {
    /// Who changes a task.
    pub enum Actor("actor", ", ") {
        Shop = "shop",
        Courier = "courier",
        Dispatch = "dispatch",
    }
}

/// Why a task failed: a code such as `NOT_AT_HOME`. An unknown one is stored as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureReason(String);

impl FailureReason {
    const MAX_LENGTH: usize = 64;

    pub const OTHER: &str = "OTHER";

    /// The reasons of the specification. Another one may contain personal data.
    pub const KNOWN: [&str; 21] = [
        "DAMAGED",
        "LOST",
        "LATE",
        "NOT_AT_HOME",
        "CLOSED_STORE",
        "WRONG_ADDR",
        "REFUSED",
        "ITEM_MISSING",
        "INCORRECT_ITEM",
        "WEATHER",
        "VEHICLE_BREAKDOWN",
        "TRAFFIC",
        "ROUTE_ISSUE",
        "ADDRESS_UNREACHABLE",
        "PACKAGING_ISSUE",
        "CUSTOMS_ISSUE",
        "INVENTORY_ISSUE",
        "INSUFFICIENT_FUND",
        "DATA_ERROR",
        "HOLIDAY",
        Self::OTHER,
    ];

    /// Replaces a reason that is not known.
    pub fn erase(&mut self) {
        if !Self::KNOWN.contains(&self.as_str()) {
            Self::OTHER.clone_into(&mut self.0);
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FailureReason {
    type Err = String;

    fn from_str(code: &str) -> Result<Self, String> {
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if (1..=Self::MAX_LENGTH).contains(&code.len()) && code.bytes().all(is_valid) {
            return Ok(Self(code.to_owned()));
        }
        Err(format!(
            "must be a code of 1 to {} letters, digits and underscores, such as NOT_AT_HOME",
            Self::MAX_LENGTH
        ))
    }
}

/// When a task is to be done: after one instant and before a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeWindow {
    pub after: Timestamp,
    pub before: Timestamp,
}

impl TimeWindow {
    /// Whether a window is part of this one.
    pub fn contains(self, other: Self) -> bool {
        self.after <= other.after && other.before <= self.before
    }
}

/// Packages of one type. As JSON, it has its stored form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredPackage", into = "StoredPackage")]
pub struct Package {
    /// Its type, such as `XL`.
    pub kind: String,
    /// At least 1.
    pub quantity: u32,
}

/// An array of the type and the quantity.
#[derive(Serialize, Deserialize)]
struct StoredPackage(String, u32);

impl From<StoredPackage> for Package {
    fn from(StoredPackage(kind, quantity): StoredPackage) -> Self {
        Self { kind, quantity }
    }
}

impl From<Package> for StoredPackage {
    fn from(package: Package) -> Self {
        Self(package.kind, package.quantity)
    }
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
    /// When it got its state, and from whom.
    pub state_since: Timestamp,
    pub state_set_by: Actor,
    pub address: Address,
    pub window: TimeWindow,
    /// Whether the request gave the window as `timeSlot`.
    pub has_time_slot: bool,
    pub details: TaskDetails,
    /// In the list of its courier; none without one.
    pub place: Option<Place>,
    /// How many incidents of it are open.
    pub open_incidents: u32,
    /// Oldest first.
    pub images: Vec<ImageId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Task {
    pub fn is_pickup(&self) -> bool {
        self.kind == TaskKind::Pickup
    }

    /// Whether nobody works on it any more, unless it is rescheduled or reopened.
    pub fn is_settled(&self) -> bool {
        !matches!(self.state, TaskState::Todo | TaskState::Doing)
    }

    pub fn is_done(&self) -> bool {
        self.state == TaskState::Done
    }

    pub fn completed_at(&self) -> Option<Timestamp> {
        self.is_done().then_some(self.state_since)
    }

    pub fn cancelled_at(&self) -> Option<Timestamp> {
        (self.state == TaskState::Cancelled).then_some(self.state_since)
    }

    /// Whether it cannot be done because the other task of its delivery, the pickup, failed.
    pub fn is_blocked_by(&self, other: &Self) -> bool {
        let has_failed = matches!(other.state, TaskState::Failed(_));
        !self.is_pickup() && !self.is_settled() && has_failed
    }

    /// Removes personal data: keeps what accounting needs.
    pub fn erase(&mut self) {
        self.address.erase();
        self.images.clear();
        if let TaskState::Failed(reason) = &mut self.state {
            reason.erase();
        }
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
    fn a_failure_reason_is_a_code() {
        for code in ["NOT_AT_HOME", "BITTEN_BY_DOG"] {
            let reason: FailureReason = code.parse().unwrap();
            assert_eq!(reason.as_str(), code);
        }
        for wrong in ["", "not at home", "É", &"A".repeat(65)] {
            assert_eq!(
                wrong.parse::<FailureReason>().unwrap_err(),
                "must be a code of 1 to 64 letters, digits and underscores, such as NOT_AT_HOME"
            );
        }
    }

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
            state: TaskState::Failed("ZOE_SLEEPS".parse().unwrap()),
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
            state: TaskState::Failed("OTHER".parse().unwrap()),
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
        let mut known: FailureReason = "NOT_AT_HOME".parse().unwrap();
        known.erase();
        assert_eq!(known.as_str(), "NOT_AT_HOME");
    }
}
