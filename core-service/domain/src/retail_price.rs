//! Promised prices: what a price was computed from, and in what an order that claims it differs.

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

/// A price that was promised: good once, for what it was computed from, until it expires.
#[derive(Clone, Debug, PartialEq)]
pub struct Promise {
    pub id: Uuid,
    /// `retail_prices/<token>`.
    pub name: String,
    pub price: Price,
    pub route: Route,
    /// The moment at which relative times of its payload were read.
    pub calculated_at: Timestamp,
    pub basis: Basis,
}

/// What a price was computed from: everything of a plan that rules can see, part by part, as
/// digests. Whom to ask for, comments and metadata are no part of it: shops often learn them
/// after the price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis([Digest; PARTS]);

/// Half a SHA-256: forging one takes 2^64 tries for any two, and each must be priced first.
type Digest = [u8; DIGEST];

const DIGEST: usize = 16;
const PARTS: usize = 2 * Part::ALL.len();

/// What of a task its price was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Address,
    Before,
    After,
    Weight,
    Packages,
    Tags,
}

impl Part {
    const ALL: [Self; 6] = [
        Self::Address,
        Self::Before,
        Self::After,
        Self::Weight,
        Self::Packages,
        Self::Tags,
    ];
}

impl Basis {
    pub fn of(plan: &DeliveryPlan) -> Self {
        let [first, second] = [&plan.pickup, &plan.dropoff].map(of_task);
        let mut digests = [Digest::default(); PARTS];
        for (digest, of_part) in digests.iter_mut().zip(first.into_iter().chain(second)) {
            *digest = of_part;
        }
        Self(digests)
    }

    /// Reads what [`Basis::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (digests, rest) = bytes.as_chunks::<DIGEST>();
        let digests = <[Digest; PARTS]>::try_from(digests).ok()?;
        rest.is_empty().then_some(Self(digests))
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.concat()
    }

    /// Whether the price was computed for the way between two addresses.
    pub fn is_between(&self, from: &Address, to: &Address) -> bool {
        self.of_part(TaskKind::Pickup, Part::Address) == address(from)
            && self.of_part(TaskKind::Dropoff, Part::Address) == address(to)
    }

    /// In what two differ, in the order of tasks and parts.
    pub fn differences(&self, other: &Self) -> Vec<(TaskKind, Part)> {
        [TaskKind::Pickup, TaskKind::Dropoff]
            .into_iter()
            .flat_map(|kind| Part::ALL.map(|part| (kind, part)))
            .filter(|(kind, part)| self.of_part(*kind, *part) != other.of_part(*kind, *part))
            .collect()
    }

    fn of_part(&self, kind: TaskKind, part: Part) -> Digest {
        let first = match kind {
            TaskKind::Pickup => 0,
            TaskKind::Dropoff => Part::ALL.len(),
        };
        self.0[first + part as usize]
    }
}

/// In the order of [`Part::ALL`].
fn of_task(plan: &TaskPlan) -> [Digest; Part::ALL.len()] {
    let mut packages = BTreeMap::new();
    for package in &plan.packages {
        *packages.entry(&package.kind).or_insert(0_u64) += u64::from(package.quantity);
    }
    let packages: Vec<_> = packages.into_iter().collect();
    let window = plan.window;
    [
        address(&plan.address),
        digest(&(window.before.as_microsecond(), plan.time_slot)),
        digest(&window.after.as_microsecond()),
        digest(&plan.weight),
        digest(&packages),
        digest(&plan.tags),
    ]
}

fn address(address: &Address) -> Digest {
    digest(&(
        &address.street_address,
        address.lat_lng.latitude(),
        address.lat_lng.longitude(),
        &address.postal_code,
        &address.locality,
        &address.country,
    ))
}

/// JSON, because its forms are told apart whatever texts are in them.
fn digest(part: &impl Serialize) -> Digest {
    let text = serde_json::to_vec(part).unwrap_or_default();
    let mut digest = Digest::default();
    for (byte, of_hash) in digest.iter_mut().zip(Sha256::digest(text)) {
        *byte = of_hash;
    }
    digest
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
            time_slot: false,
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
                meters: 1000,
                seconds: 240,
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
    fn what_rules_can_see_makes_a_difference_and_is_named() {
        type Change = fn(&mut TaskPlan);
        let cases: [(Part, Change); 11] = [
            (Part::Address, |task| task.address.street_address.push('x')),
            (Part::Address, |task| {
                task.address.lat_lng = LatLng::new(48.8695, 2.3313).unwrap();
            }),
            (Part::Address, |task| {
                task.address.postal_code = Some("75002".to_owned());
            }),
            (Part::Address, |task| {
                task.address.locality = Some("75002".to_owned());
            }),
            (Part::Before, |task| {
                task.window.before += SignedDuration::from_micros(1);
            }),
            (Part::Before, |task| task.time_slot = true),
            (Part::After, |task| {
                task.window.after += SignedDuration::from_secs(1);
            }),
            (Part::Weight, |task| task.weight = Some(0)),
            (Part::Packages, |task| task.packages = vec![package("S", 1)]),
            (Part::Tags, |task| task.tags = vec!["a b".to_owned()]),
            (Part::Tags, |task| {
                task.tags = vec!["a".to_owned(), "b".to_owned()];
            }),
        ];
        let basis = Basis::of(&plan());
        let mut seen = vec![basis.clone()];
        for (part, change) in cases {
            for kind in [TaskKind::Pickup, TaskKind::Dropoff] {
                let mut other = plan();
                change(match kind {
                    TaskKind::Pickup => &mut other.pickup,
                    TaskKind::Dropoff => &mut other.dropoff,
                });
                let other = Basis::of(&other);
                assert_eq!(basis.differences(&other), [(kind, part)]);
                assert!(!seen.contains(&other), "{part:?} again");
                seen.push(other);
            }
        }
    }

    #[test]
    fn what_rules_cannot_see_makes_none() {
        let basis = Basis::of(&plan());
        let mut changed = plan();
        let dropoff = &mut changed.dropoff;
        dropoff.address.id = AddressId::new();
        dropoff.address.contact_name = Some("Ada".to_owned());
        dropoff.address.telephone = Some("+33612345678".to_owned());
        dropoff.comments = "rings twice".to_owned();
        dropoff.metadata = BTreeMap::from([("order".to_owned(), "1".to_owned())]);

        assert_eq!(basis.differences(&Basis::of(&changed)), []);
        assert_eq!(Basis::from_bytes(&basis.to_bytes()), Some(basis));
    }

    #[test]
    fn packages_are_counted_however_they_are_listed() {
        let with = |packages| {
            let mut plan = plan();
            plan.pickup.packages = packages;
            Basis::of(&plan)
        };

        let once = with(vec![package("S", 2), package("XL", 1)]);
        let again = with(vec![package("XL", 1), package("S", 1), package("S", 1)]);

        assert_eq!(once, again);
        assert_ne!(once, with(vec![package("S", 1), package("XL", 2)]));
    }

    #[test]
    fn only_a_whole_basis_is_read() {
        let bytes = Basis::of(&plan()).to_bytes();

        for wrong in [&bytes[1..], &[bytes.as_slice(), &[0]].concat(), &[]] {
            assert_eq!(Basis::from_bytes(wrong), None);
        }
    }
}
