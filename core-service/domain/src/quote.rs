//! Quotes: calculated prices that are binding until they expire, and the check that a delivery
//! matches its quote.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::{
    address::Address,
    delivery::{Delivery, Route},
    money::Price,
    task::{Task, TaskKind},
};

/// A calculated price, binding until it expires for one delivery that matches the fingerprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    pub id: Uuid,
    /// `retail_prices/<token>`.
    pub name: String,
    pub price: Price,
    pub route: Route,
    /// The time that relative times of the request refer to.
    pub calculated_at: Timestamp,
    pub fingerprint: DeliveryFingerprint,
}

/// Digests of the fields of a delivery that price rules can use. Contacts, comments and metadata are
/// excluded: shops often know them only after they have the price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryFingerprint([TaskDigests; 2]);

/// The digests of a task, in the order of [`QuotedField::ALL`].
type TaskDigests = [Digest; QuotedField::ALL.len()];

/// Half a SHA-256: a collision takes about 2^64 calculated prices.
type Digest = [u8; 16];

/// A field of a task that price rules can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotedField {
    Address,
    Before,
    After,
    Weight,
    Packages,
    Tags,
}

impl QuotedField {
    const ALL: [Self; 6] = [
        Self::Address,
        Self::Before,
        Self::After,
        Self::Weight,
        Self::Packages,
        Self::Tags,
    ];
}

impl DeliveryFingerprint {
    pub fn of(delivery: &Delivery) -> Self {
        Self([&delivery.pickup, &delivery.dropoff].map(task_digests))
    }

    /// Parses the bytes of [`DeliveryFingerprint::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (digests, rest) = bytes.as_chunks();
        let (tasks, []) = digests.as_chunks() else {
            return None;
        };
        let tasks = tasks.try_into().ok()?;
        rest.is_empty().then_some(Self(tasks))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.as_flattened().concat()
    }

    /// Whether the price was calculated for these two addresses.
    pub fn matches_addresses(&self, from: &Address, to: &Address) -> bool {
        self.digest(TaskKind::Pickup, QuotedField::Address) == address_digest(from)
            && self.digest(TaskKind::Dropoff, QuotedField::Address) == address_digest(to)
    }

    /// The fields that differ, in the order of tasks and fields.
    pub fn differences(&self, other: &Self) -> Vec<(TaskKind, QuotedField)> {
        [TaskKind::Pickup, TaskKind::Dropoff]
            .into_iter()
            .flat_map(|kind| QuotedField::ALL.map(|field| (kind, field)))
            .filter(|(kind, field)| self.digest(*kind, *field) != other.digest(*kind, *field))
            .collect()
    }

    fn digest(&self, kind: TaskKind, field: QuotedField) -> Digest {
        self.0[kind as usize][field as usize]
    }
}

fn task_digests(task: &Task) -> TaskDigests {
    let (window, details) = (task.window, &task.details);
    let mut packages = BTreeMap::new();
    for package in &details.packages {
        *packages.entry(&package.kind).or_insert(0_u64) += u64::from(package.quantity);
    }
    [
        address_digest(&task.address),
        digest(&(window.before.as_microsecond(), task.has_time_slot)),
        digest(&window.after.as_microsecond()),
        digest(&details.weight),
        digest(&packages.into_iter().collect::<Vec<_>>()),
        digest(&details.tags),
    ]
}

fn address_digest(address: &Address) -> Digest {
    digest(&(
        &address.street_address,
        address.lat_lng.latitude(),
        address.lat_lng.longitude(),
        &address.postal_code,
        &address.locality,
        &address.country,
    ))
}

/// Digests the JSON form, which is unambiguous for any text.
fn digest(field: &impl Serialize) -> Digest {
    let text = serde_json::to_vec(field).unwrap_or_default();
    let hash: [u8; 32] = Sha256::digest(text).into();
    hash.as_chunks().0[0]
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::{address::LatLng, fixture, id::AddressId, task::Package};

    fn delivery() -> Delivery {
        fixture::delivery(1000)
    }

    fn package(kind: &str, quantity: u32) -> Package {
        Package {
            kind: kind.to_owned(),
            quantity,
        }
    }

    #[test]
    fn a_fingerprint_matches_its_own_two_addresses_in_their_order() {
        let mut delivery = delivery();
        delivery.dropoff.address.street_address = "48 Rue de Rivoli".to_owned();
        let fingerprint = DeliveryFingerprint::of(&delivery);
        let [from, to] = [&delivery.pickup.address, &delivery.dropoff.address];
        for (first, second, expected) in [
            (from, to, true),
            (to, from, false),
            (from, from, false),
            (to, to, false),
        ] {
            assert_eq!(fingerprint.matches_addresses(first, second), expected);
        }
    }

    #[test]
    fn changes_of_fields_used_by_rules_are_reported() {
        type Change = fn(&mut Task);
        let cases: [(QuotedField, Change); 11] = [
            (QuotedField::Address, |task| {
                task.address.street_address.push('x');
            }),
            (QuotedField::Address, |task| {
                task.address.lat_lng = LatLng::new(48.8695, 2.3313).unwrap();
            }),
            (QuotedField::Address, |task| {
                task.address.postal_code = Some("75001".to_owned());
            }),
            (QuotedField::Address, |task| {
                task.address.locality = Some("75001".to_owned());
            }),
            (QuotedField::Before, |task| {
                task.window.before += SignedDuration::from_micros(1);
            }),
            (QuotedField::Before, |task| task.has_time_slot = true),
            (QuotedField::After, |task| {
                task.window.after += SignedDuration::from_secs(1);
            }),
            (QuotedField::Weight, |task| task.details.weight = Some(0)),
            (QuotedField::Packages, |task| {
                task.details.packages = vec![package("S", 1)];
            }),
            (QuotedField::Tags, |task| {
                task.details.tags = vec!["a b".to_owned()];
            }),
            (QuotedField::Tags, |task| {
                task.details.tags = vec!["a".to_owned(), "b".to_owned()];
            }),
        ];
        let fingerprint = DeliveryFingerprint::of(&delivery());
        let mut seen = vec![fingerprint.clone()];
        for (field, change) in cases {
            for kind in [TaskKind::Pickup, TaskKind::Dropoff] {
                let mut other = delivery();
                change(match kind {
                    TaskKind::Pickup => &mut other.pickup,
                    TaskKind::Dropoff => &mut other.dropoff,
                });
                let other = DeliveryFingerprint::of(&other);
                assert_eq!(fingerprint.differences(&other), [(kind, field)]);
                assert!(!seen.contains(&other), "{field:?} again");
                seen.push(other);
            }
        }
    }

    #[test]
    fn changes_of_other_fields_are_ignored() {
        let fingerprint = DeliveryFingerprint::of(&delivery());
        let mut changed = delivery();
        let dropoff = &mut changed.dropoff;
        dropoff.address.id = AddressId::new();
        dropoff.address.contact_name = Some("Ada".to_owned());
        dropoff.address.telephone = Some("+33612345678".to_owned());
        dropoff.details.comments = "rings twice".to_owned();
        dropoff.details.metadata = BTreeMap::from([("order".to_owned(), "1".to_owned())]);

        assert_eq!(
            fingerprint.differences(&DeliveryFingerprint::of(&changed)),
            []
        );
        assert_eq!(
            DeliveryFingerprint::from_bytes(&fingerprint.to_bytes()),
            Some(fingerprint)
        );
    }

    #[test]
    fn packages_of_the_same_kind_are_added_up() {
        let with = |packages| {
            let mut delivery = delivery();
            delivery.pickup.details.packages = packages;
            DeliveryFingerprint::of(&delivery)
        };

        let listed_once = with(vec![package("S", 2), package("XL", 1)]);
        let listed_twice = with(vec![package("XL", 1), package("S", 1), package("S", 1)]);

        assert_eq!(listed_once, listed_twice);
        assert_ne!(listed_once, with(vec![package("S", 1), package("XL", 2)]));
    }

    #[test]
    fn fingerprints_of_a_wrong_length_are_rejected() {
        let bytes = DeliveryFingerprint::of(&delivery()).to_bytes();

        for wrong in [&bytes[1..], &[bytes.as_slice(), &[0]].concat(), &[]] {
            assert_eq!(DeliveryFingerprint::from_bytes(wrong), None);
        }
    }
}
