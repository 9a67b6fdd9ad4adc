//! The tracking page of a delivery, for the holder of its link: what it shows, and for how long.

pub mod estimate;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use crate::{
    address::Address,
    delivery::Delivery,
    delivery_search::fold,
    id::TaskId,
    task::{FailureReason, Task, TaskState, TimeWindow},
    task_event::{TaskEvent, TransitionName},
};

/// How long there is a page after the delivery has ended; after its window, if it has not.
const AFTER_END: SignedDuration = SignedDuration::from_hours(7 * 24);
const AFTER_WINDOW: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The link to a page, as it is stored with the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackingLink {
    pub secret: TrackingSecret,
    /// When dispatch revoked it.
    pub revoked_at: Option<Timestamp>,
}

impl TrackingLink {
    /// A new link, with a secret of random bits.
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            secret: TrackingSecret(secret),
            revoked_at: None,
        }
    }
}

/// What a link proves beside the id that it names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TrackingSecret(pub [u8; 16]);

impl fmt::Debug for TrackingSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TrackingSecret")
    }
}

/// The last segment of a link: the id of the dropoff, by which the delivery is found, and the secret.
#[derive(Clone, Copy, Debug)]
pub struct TrackingToken {
    pub dropoff_id: TaskId,
    secret: TrackingSecret,
}

impl TrackingToken {
    /// The token of a delivery's link; `None` if it has none that is valid.
    pub fn of(delivery: &Delivery) -> Option<Self> {
        let link = delivery.tracking.filter(|link| link.revoked_at.is_none())?;
        Some(Self {
            dropoff_id: delivery.dropoff.id,
            secret: link.secret,
        })
    }

    /// Each token has one text.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok()?;
        let ([id, secret], []) = bytes.as_chunks::<16>() else {
            return None;
        };
        Some(Self {
            dropoff_id: TaskId(Uuid::from_bytes(*id)),
            secret: TrackingSecret(*secret),
        })
    }

    pub fn bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(self.dropoff_id.0.as_bytes());
        bytes[16..].copy_from_slice(&self.secret.0);
        bytes
    }

    /// Whether a delivery has this token, revoked or not. Compares in constant time.
    pub fn is_of(&self, delivery: &Delivery) -> bool {
        let is_same = |link: TrackingLink| bool::from(link.secret.0.ct_eq(&self.secret.0));
        delivery.dropoff.id == self.dropoff_id && delivery.tracking.is_some_and(is_same)
    }
}

impl fmt::Display for TrackingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.bytes()))
    }
}

/// Whether the link of a delivery leads nowhere any more.
pub fn is_over(delivery: &Delivery, now: Timestamp) -> bool {
    let is_revoked = delivery
        .tracking
        .is_none_or(|link| link.revoked_at.is_some());
    let ended = delivery.dropoff.completed_at().or(delivery.cancelled_at());
    let (since, shown) = match ended {
        Some(ended) => (ended, AFTER_END),
        None => (delivery.dropoff.window.before, AFTER_WINDOW),
    };
    is_revoked || now.duration_since(since) >= shown
}

/// The kinds of events in the history that the page shows something of.
pub const SHOWN: &[TransitionName] = &[
    TransitionName::Started,
    TransitionName::Done,
    TransitionName::Failed,
    TransitionName::Rescheduled,
];

/// What the page says about a delivery, and nothing else of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracked {
    pub stage: Stage,
    pub ordered_at: Timestamp,
    pub collected_at: Option<Timestamp>,
    pub on_its_way_at: Option<Timestamp>,
    /// When it was delivered, not delivered, or cancelled.
    pub ended_at: Option<Timestamp>,
    /// `None` at the end, like the address.
    pub window: Option<TimeWindow>,
    pub street: Option<String>,
    pub locality: Option<String>,
}

/// How far a delivery is, for its recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Ordered,
    Collected,
    OnItsWay,
    Delivered,
    NotDelivered(Obstacle),
    Cancelled,
}

/// Why a parcel was not delivered, as far as its recipient can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    NobodyThere,
    Address,
    Refused,
    /// Only the shop knows more.
    Other,
}

impl Obstacle {
    fn of(reason: &FailureReason) -> Self {
        match reason.as_str() {
            "NOT_AT_HOME" => Self::NobodyThere,
            "WRONG_ADDR" | "ADDRESS_UNREACHABLE" => Self::Address,
            "REFUSED" => Self::Refused,
            _ => Self::Other,
        }
    }
}

impl Stage {
    /// A parcel that has arrived is delivered, also if its pickup failed.
    pub fn of(delivery: &Delivery) -> Self {
        let (pickup, dropoff) = (&delivery.pickup, &delivery.dropoff);
        match (&dropoff.state, &pickup.state) {
            (TaskState::Cancelled, _) | (_, TaskState::Cancelled) => Self::Cancelled,
            (TaskState::Done, _) => Self::Delivered,
            (TaskState::Failed(reason), _) => Self::NotDelivered(Obstacle::of(reason)),
            (_, TaskState::Failed(_)) => Self::NotDelivered(Obstacle::Other),
            (TaskState::Doing, _) => Self::OnItsWay,
            (TaskState::Todo, TaskState::Done) => Self::Collected,
            (TaskState::Todo, TaskState::Todo | TaskState::Doing) => Self::Ordered,
        }
    }

    fn is_end(self) -> bool {
        matches!(
            self,
            Self::Delivered | Self::NotDelivered(_) | Self::Cancelled
        )
    }
}

impl Tracked {
    /// The history is that of both tasks, in the order of the changes. It tells when something occurred; the tasks, when
    /// its report arrived.
    pub fn of(delivery: &Delivery, history: &[TaskEvent]) -> Self {
        let (pickup, dropoff) = (&delivery.pickup, &delivery.dropoff);
        let stage = Stage::of(delivery);
        let failed = match pickup.state {
            TaskState::Failed(_) if !dropoff.is_settled() => pickup,
            _ => dropoff,
        };
        let since = |task: &Task, name| last(history, task, name).unwrap_or(task.state_since);
        let started_at = last(history, dropoff, TransitionName::Started);
        Self {
            stage,
            ordered_at: delivery.created_at,
            collected_at: pickup
                .is_done()
                .then(|| since(pickup, TransitionName::Done)),
            on_its_way_at: match dropoff.state {
                TaskState::Doing => Some(started_at.unwrap_or(dropoff.state_since)),
                TaskState::Done | TaskState::Failed(_) => started_at,
                TaskState::Todo | TaskState::Cancelled => None,
            },
            ended_at: match stage {
                Stage::Delivered => Some(since(dropoff, TransitionName::Done)),
                Stage::NotDelivered(_) => Some(since(failed, TransitionName::Failed)),
                Stage::Cancelled => delivery.cancelled_at(),
                Stage::Ordered | Stage::Collected | Stage::OnItsWay => None,
            },
            window: (!stage.is_end()).then_some(dropoff.window),
            street: street(&dropoff.address).filter(|_| !stage.is_end()),
            locality: dropoff.address.locality.clone().filter(|_| !stage.is_end()),
        }
    }
}

/// When a task last had a transition since it was planned.
fn last(history: &[TaskEvent], task: &Task, name: TransitionName) -> Option<Timestamp> {
    let events = history
        .iter()
        .rev()
        .filter(|event| event.task_id == task.id);
    let mut since_planned =
        events.take_while(|event| event.transition.name() != TransitionName::Rescheduled);
    let found = since_planned.find(|event| event.transition.name() == name);
    found.map(|event| event.occurrence.at)
}

/// Words of what is not the street: of the building, its floors and its codes. Without accents.
const NOT_OF_STREETS: &[&str] = &[
    "apartment",
    "appartement",
    "apt",
    "bat",
    "batiment",
    "building",
    "code",
    "digicode",
    "door",
    "escalier",
    "etage",
    "etagen",
    "flat",
    "floor",
    "floors",
    "interfono",
    "interphone",
    "klingel",
    "og",
    "piano",
    "piso",
    "porte",
    "puerta",
    "scala",
    "stock",
    "tur",
    "verdieping",
];

/// A part of an address text that is a house number and a street, and nothing else: others may be a name, a floor or a
/// code.
fn street(address: &Address) -> Option<String> {
    let parts = address.street_address.split([',', '\n', ';']);
    let parts: Vec<_> = parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    let is_street = |text: &&str| is_street(text, address.postal_code.as_deref());
    // "12, rue de la Paix"
    let joined = parts.windows(2).map(|pair| pair.join(" "));
    let found = parts
        .iter()
        .find(|part| is_street(part))
        .map(|part| (*part).to_owned());
    found.or_else(|| joined.into_iter().find(|text| is_street(&text.as_str())))
}

fn is_street(text: &str, postal_code: Option<&str>) -> bool {
    let words: Vec<_> = text.split_whitespace().collect();
    let has_digit = |word: &&&str| word.contains(|char: char| char.is_ascii_digit());
    let numbers: Vec<_> = words.iter().filter(has_digit).copied().collect();
    let [number] = numbers[..] else {
        return false;
    };
    let is_at_an_end = match &words[..] {
        // "Hauptstraße 12 a"
        [_, .., found, letter] if *found == number => letter.chars().count() == 1,
        [first, .., last] => *first == number || *last == number,
        _ => false,
    };
    let is_house_number = number.len() <= 7
        && number.starts_with(|char: char| char.is_ascii_digit())
        && Some(number) != postal_code;
    let is_word = |word: &&str| {
        let is_of_word = |char: char| char.is_alphabetic() || "'’.-".contains(char);
        word.chars().all(is_of_word)
            && !NOT_OF_STREETS.contains(&&*fold(word.trim_end_matches('.')))
    };
    let mut others = words.iter().filter(|word| **word != number);
    is_at_an_end && is_house_number && others.all(is_word)
}
