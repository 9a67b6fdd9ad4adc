//! The totals of a delivery that its price depends on.

use std::collections::BTreeMap;

use super::definition::{Measure, Packages};
use crate::delivery::DeliveryPlan;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) meters: i64,
    pub(super) seconds: i64,
    /// Grams, both tasks together; `None` if neither has a weight.
    pub(super) weight: Option<i64>,
    /// Of both tasks together, in the units of `[packages]`; `None` if the volume of a package is
    /// unknown.
    pub(super) volume: Option<i64>,
    /// Of both tasks together, by kind.
    pub(super) packages: BTreeMap<String, i64>,
}

impl Totals {
    /// Sums saturate at the largest number, so that charges on them fail with an overflow.
    pub(super) fn of(plan: &DeliveryPlan, types: Option<&Packages>) -> Self {
        let tasks = [&plan.pickup, &plan.dropoff];
        let mut packages = BTreeMap::new();
        for package in tasks.iter().flat_map(|task| &task.packages) {
            *packages.entry(package.kind.clone()).or_insert(0_i64) += i64::from(package.quantity);
        }
        let volume = packages.iter().try_fold(0_i64, |sum, (kind, count)| {
            let volume = types?.get(kind.as_str())?.volume?;
            Some(sum.saturating_add(volume.saturating_mul(*count)))
        });
        Self {
            meters: plan.route.distance_meters.into(),
            seconds: plan.route.duration_seconds.into(),
            weight: tasks
                .iter()
                .filter_map(|task| task.weight)
                .reduce(i64::saturating_add),
            volume,
            packages,
        }
    }

    pub(super) fn measure(&self, measure: Measure) -> Option<i64> {
        match measure {
            Measure::Distance => Some(self.meters),
            Measure::Duration => Some(self.seconds),
            Measure::Weight => self.weight,
            Measure::Volume => self.volume,
        }
    }

    /// The number of packages of a kind.
    pub(super) fn package_count(&self, kind: &str) -> i64 {
        self.packages.get(kind).copied().unwrap_or(0)
    }
}
