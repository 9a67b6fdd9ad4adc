//! Deliveries that conditions are tried on before they ever meet one.

use std::collections::{BTreeMap, BTreeSet};

use cel::Context;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use uuid::Uuid;

use super::{
    definition::Target,
    load::Load,
    variables::{Circumstances, Variables},
};
use crate::{
    address::{Address, LatLng},
    delivery::{DeliveryPlan, DistanceSource, Route},
    id::AddressId,
    task::{Package, TaskKind, TaskPlan, TimeWindow},
};

/// One that says everything, and one that says as little as it may.
pub(super) struct Probes<'a> {
    functions: &'a Context<'static, 'static>,
    both: [Probe; 2],
}

struct Probe {
    plan: DeliveryPlan,
    load: Load,
    now: Zoned,
}

impl<'a> Probes<'a> {
    pub(super) fn new(
        functions: &'a Context<'static, 'static>,
        packages: Option<&BTreeSet<String>>,
        volumes: &BTreeMap<String, i64>,
    ) -> Self {
        let packages = packages.into_iter().flatten().map(|kind| Package {
            kind: kind.clone(),
            quantity: 1,
        });
        let mut full = Probe::new(plan(Some(1), packages.collect(), Some("probe")), volumes);
        full.load.volume = Some(1);
        let bare = Probe::new(plan(None, Vec::new(), None), volumes);
        Self {
            functions,
            both: [full, bare],
        }
    }

    /// Gives an attempt the scopes that rules for a target see.
    pub(super) fn scopes<R>(
        &self,
        target: Target,
        attempt: impl FnOnce(&[Context<'_, '_>]) -> R,
    ) -> R {
        let variables = self.both.each_ref().map(Probe::variables);
        let deliveries = variables.each_ref().map(|of| of.scope(self.functions));
        if target == Target::Delivery {
            return attempt(&deliveries);
        }
        let tasks = variables.each_ref().map(|of| of.of_task(TaskKind::Dropoff));
        let both = tasks.iter().zip(&deliveries);
        attempt(
            &both
                .map(|(task, delivery)| task.scope(delivery))
                .collect::<Vec<_>>(),
        )
    }
}

impl Probe {
    fn new(plan: DeliveryPlan, volumes: &BTreeMap<String, i64>) -> Self {
        Self {
            load: Load::of(&plan, volumes),
            plan,
            now: Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC),
        }
    }

    fn variables(&self) -> Variables<'_> {
        let circumstances = Circumstances {
            plan: &self.plan,
            store: "probe",
            now: &self.now,
        };
        Variables::new(circumstances, &self.load)
    }
}

fn plan(weight: Option<i64>, packages: Vec<Package>, text: Option<&str>) -> DeliveryPlan {
    let text = text.map(str::to_owned);
    let task = TaskPlan {
        address: Address {
            id: AddressId(Uuid::nil()),
            street_address: String::new(),
            lat_lng: LatLng::new(0.0, 0.0).expect("the origin is on the earth"),
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
        time_slot: false,
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
            meters: 1,
            seconds: 1,
            source: DistanceSource::StraightLine,
        },
    }
}
