//! Sample deliveries, with which the conditions of a price list are evaluated to check them.

use std::collections::{BTreeMap, BTreeSet};

use cel::Context;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use uuid::Uuid;

use super::{totals::Totals, variables::Variables};
use crate::{
    address::{Address, LatLng},
    delivery::{DeliveryPlan, DistanceSource, Route},
    id::AddressId,
    task::{Package, TaskKind, TaskPlan, TimeWindow},
};

/// A delivery with every optional value that conditions can read, and one with none.
pub(super) struct SampleInputs<'a> {
    functions: &'a Context<'static, 'static>,
    deliveries: [SampleInput; 2],
}

struct SampleInput {
    plan: DeliveryPlan,
    totals: Totals,
    now: Zoned,
}

impl<'a> SampleInputs<'a> {
    pub(super) fn new(
        functions: &'a Context<'static, 'static>,
        packages: Option<&BTreeSet<String>>,
        volumes: &BTreeMap<String, i64>,
    ) -> Self {
        let packages = packages.into_iter().flatten().map(|kind| Package {
            kind: kind.clone(),
            quantity: 1,
        });
        let mut full = SampleInput::new(
            plan(Some(1), packages.collect(), Some("placeholder")),
            volumes,
        );
        full.totals.volume = Some(1);
        let minimal = SampleInput::new(plan(None, Vec::new(), None), volumes);
        Self {
            functions,
            deliveries: [full, minimal],
        }
    }

    /// Calls `check` with the CEL scopes (variables and functions) of task rules, one per
    /// sample. They contain all variables of delivery rules, so that these can be checked with them
    /// too.
    pub(super) fn with_scopes(&self, check: impl FnOnce(&[Context<'_, '_>])) {
        let variables = self.deliveries.each_ref().map(SampleInput::variables);
        let variables = variables.each_ref();
        let delivery_scopes = variables.map(|variables| variables.scope(self.functions));
        let tasks = variables.map(|variables| variables.task_variable(TaskKind::Dropoff));
        let tasks = tasks.iter().zip(&delivery_scopes);
        let scopes: Vec<_> = tasks.map(|(task, delivery)| task.scope(delivery)).collect();
        check(&scopes);
    }
}

impl SampleInput {
    fn new(plan: DeliveryPlan, volumes: &BTreeMap<String, i64>) -> Self {
        Self {
            totals: Totals::of(&plan, volumes),
            plan,
            now: Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC),
        }
    }

    fn variables(&self) -> Variables<'_> {
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
