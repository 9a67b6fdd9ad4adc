//! Sample deliveries, with which the conditions of a price list are evaluated to check them.

use std::collections::BTreeMap;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use uuid::Uuid;

use super::{definition::Packages, totals::Totals, variables::Variables};
use crate::{
    address::{Address, LatLng},
    delivery::{DeliveryPlan, DistanceSource, Route},
    id::AddressId,
    task::{Package, TaskPlan, TimeWindow},
};

pub(super) struct SampleInput {
    plan: DeliveryPlan,
    totals: Totals,
    now: Zoned,
}

/// A delivery with every optional value that conditions can read, and one with none.
pub(super) fn sample_inputs(types: Option<&Packages>) -> [SampleInput; 2] {
    let packages = types.into_iter().flat_map(Packages::keys);
    let packages = packages.map(|kind| Package {
        kind: kind.get_ref().clone(),
        quantity: 1,
    });
    let plan_of_all = plan(Some(1), packages.collect(), Some("placeholder"));
    let mut full = SampleInput::new(plan_of_all, types);
    full.totals.volume = Some(1);
    [full, SampleInput::new(plan(None, Vec::new(), None), types)]
}

impl SampleInput {
    fn new(plan: DeliveryPlan, types: Option<&Packages>) -> Self {
        Self {
            totals: Totals::of(&plan, types),
            plan,
            now: Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC),
        }
    }

    pub(super) fn variables(&self) -> Variables<'_> {
        Variables::new(&self.plan, &self.totals, "placeholder", &self.now)
    }
}

fn plan(weight: Option<i64>, packages: Vec<Package>, text: Option<&str>) -> DeliveryPlan {
    let text = text.map(str::to_owned);
    let task = TaskPlan {
        address: Address {
            id: AddressId(Uuid::nil()),
            street_address: String::new(),
            lat_lng: LatLng::new(0.0, 0.0).expect("0, 0 is a valid position"),
            place_name: None,
            contact_name: None,
            telephone: None,
            description: None,
            postal_code: text.clone(),
            locality: text.clone(),
            country: text.clone(),
        },
        window: TimeWindow {
            after: Timestamp::UNIX_EPOCH,
            before: Timestamp::UNIX_EPOCH,
        },
        has_time_slot: false,
        comments: String::new(),
        weight,
        packages,
        tags: text.into_iter().collect(),
        metadata: BTreeMap::new(),
    };
    DeliveryPlan {
        pickup: task.clone(),
        dropoff: task,
        route: Route {
            distance_meters: 1,
            duration_seconds: 1,
            source: DistanceSource::StraightLine,
        },
    }
}
