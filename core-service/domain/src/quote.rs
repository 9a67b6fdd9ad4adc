//! Quotes: calculated prices that are binding until they expire, and the check that a delivery
//! matches its quote.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::{
    address::Address,
    delivery::{DeliveryPlan, Route},
    money::Price,
    task::{TaskKind, TaskPlan},
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
    pub fingerprint: PlanFingerprint,
}

/// Digests of the fields of a plan that price rules can use. Contacts, comments and metadata are
/// excluded: shops often know them only after they have the price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFingerprint([TaskDigests; 2]);

/// The digests of a task, in the order of [`PlanField::ALL`].
type TaskDigests = [Digest; PlanField::ALL.len()];

/// Half a SHA-256: a collision takes about 2^64 calculated prices.
type Digest = [u8; 16];

/// A field of a task that price rules can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanField {
    Address,
    Before,
    After,
    Weight,
    Packages,
    Tags,
}

impl PlanField {
    const ALL: [Self; 6] = [
        Self::Address,
        Self::Before,
        Self::After,
        Self::Weight,
        Self::Packages,
        Self::Tags,
    ];
}

impl PlanFingerprint {
    pub fn of(plan: &DeliveryPlan) -> Self {
        Self([&plan.pickup, &plan.dropoff].map(task_digests))
    }

    /// Parses the bytes of [`PlanFingerprint::to_bytes`].
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
        self.digest(TaskKind::Pickup, PlanField::Address) == address_digest(from)
            && self.digest(TaskKind::Dropoff, PlanField::Address) == address_digest(to)
    }

    /// The fields that differ, in the order of tasks and fields.
    pub fn differences(&self, other: &Self) -> Vec<(TaskKind, PlanField)> {
        [TaskKind::Pickup, TaskKind::Dropoff]
            .into_iter()
            .flat_map(|kind| PlanField::ALL.map(|field| (kind, field)))
            .filter(|(kind, field)| self.digest(*kind, *field) != other.digest(*kind, *field))
            .collect()
    }

    fn digest(&self, kind: TaskKind, field: PlanField) -> Digest {
        self.0[kind as usize][field as usize]
    }
}

fn task_digests(plan: &TaskPlan) -> TaskDigests {
    let mut packages = BTreeMap::new();
    for package in &plan.packages {
        *packages.entry(&package.kind).or_insert(0_u64) += u64::from(package.quantity);
    }
    let packages: Vec<_> = packages.into_iter().collect();
    let window = plan.window;
    [
        address_digest(&plan.address),
        digest(&(window.before.as_microsecond(), plan.has_time_slot)),
        digest(&window.after.as_microsecond()),
        digest(&plan.weight),
        digest(&packages),
        digest(&plan.tags),
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
    use crate::{
        address::LatLng,
        delivery::DistanceSource,
        id::AddressId,
        task::{Package, TimeWindow},
    };

    fn task() -> TaskPlan {
        let at = |second| Timestamp::from_second(second).unwrap();
        TaskPlan {
            address: Address {
                id: AddressId::new(),
                street_address: "24 Rue de la Paix".to_owned(),
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
            has_time_slot: false,
            comments: String::new(),
            weight: None,
            packages: Vec::new(),
            tags: Vec::new(),
            metadata: BTreeMap::new(),
        }
    }

    fn plan() -> DeliveryPlan {
        DeliveryPlan {
            pickup: task(),
            dropoff: task(),
            route: Route {
                distance_meters: 1000,
                duration_seconds: 240,
                source: DistanceSource::StraightLine,
            },
        }
    }

    fn package(kind: &str, quantity: u32) -> Package {
        Package {
            kind: kind.to_owned(),
            quantity,
        }
    }

    #[test]
    fn a_fingerprint_matches_its_own_two_addresses_in_their_order() {
        let mut plan = plan();
        plan.dropoff.address.street_address = "48 Rue de Rivoli".to_owned();
        let fingerprint = PlanFingerprint::of(&plan);
        let [from, to] = [&plan.pickup.address, &plan.dropoff.address];
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
        type Change = fn(&mut TaskPlan);
        let cases: [(PlanField, Change); 11] = [
            (PlanField::Address, |task| {
                task.address.street_address.push('x');
            }),
            (PlanField::Address, |task| {
                task.address.lat_lng = LatLng::new(48.8695, 2.3313).unwrap();
            }),
            (PlanField::Address, |task| {
                task.address.postal_code = Some("75002".to_owned());
            }),
            (PlanField::Address, |task| {
                task.address.locality = Some("75002".to_owned());
            }),
            (PlanField::Before, |task| {
                task.window.before += SignedDuration::from_micros(1);
            }),
            (PlanField::Before, |task| task.has_time_slot = true),
            (PlanField::After, |task| {
                task.window.after += SignedDuration::from_secs(1);
            }),
            (PlanField::Weight, |task| task.weight = Some(0)),
            (PlanField::Packages, |task| {
                task.packages = vec![package("S", 1)];
            }),
            (PlanField::Tags, |task| task.tags = vec!["a b".to_owned()]),
            (PlanField::Tags, |task| {
                task.tags = vec!["a".to_owned(), "b".to_owned()];
            }),
        ];
        let fingerprint = PlanFingerprint::of(&plan());
        let mut seen = vec![fingerprint.clone()];
        for (field, change) in cases {
            for kind in [TaskKind::Pickup, TaskKind::Dropoff] {
                let mut other = plan();
                change(match kind {
                    TaskKind::Pickup => &mut other.pickup,
                    TaskKind::Dropoff => &mut other.dropoff,
                });
                let other = PlanFingerprint::of(&other);
                assert_eq!(fingerprint.differences(&other), [(kind, field)]);
                assert!(!seen.contains(&other), "{field:?} again");
                seen.push(other);
            }
        }
    }

    #[test]
    fn changes_of_other_fields_are_ignored() {
        let fingerprint = PlanFingerprint::of(&plan());
        let mut changed = plan();
        let dropoff = &mut changed.dropoff;
        dropoff.address.id = AddressId::new();
        dropoff.address.contact_name = Some("Ada".to_owned());
        dropoff.address.telephone = Some("+33612345678".to_owned());
        dropoff.comments = "rings twice".to_owned();
        dropoff.metadata = BTreeMap::from([("order".to_owned(), "1".to_owned())]);

        assert_eq!(fingerprint.differences(&PlanFingerprint::of(&changed)), []);
        assert_eq!(
            PlanFingerprint::from_bytes(&fingerprint.to_bytes()),
            Some(fingerprint)
        );
    }

    #[test]
    fn packages_of_the_same_kind_are_added_up() {
        let with = |packages| {
            let mut plan = plan();
            plan.pickup.packages = packages;
            PlanFingerprint::of(&plan)
        };

        let listed_once = with(vec![package("S", 2), package("XL", 1)]);
        let listed_twice = with(vec![package("XL", 1), package("S", 1), package("S", 1)]);

        assert_eq!(listed_once, listed_twice);
        assert_ne!(listed_once, with(vec![package("S", 1), package("XL", 2)]));
    }

    #[test]
    fn fingerprints_of_a_wrong_length_are_rejected() {
        let bytes = PlanFingerprint::of(&plan()).to_bytes();

        for wrong in [&bytes[1..], &[bytes.as_slice(), &[0]].concat(), &[]] {
            assert_eq!(PlanFingerprint::from_bytes(wrong), None);
        }
    }
}
