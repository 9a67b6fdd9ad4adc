//! What of a delivery is measured and counted for its price.

use std::collections::BTreeMap;

use super::definition::Measure;
use crate::delivery::DeliveryPlan;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) meters: i64,
    pub(super) seconds: i64,
    /// Grams, both tasks together; `None` if neither says.
    pub(super) weight: Option<i64>,
    /// Of both tasks together, in the units of `[packages]`.
    pub(super) volume: Option<i64>,
    /// Of both tasks together, by kind.
    pub(super) packages: BTreeMap<String, i64>,
}

impl Load {
    /// Sums that don't fit become the largest number: charges on them overflow and say so.
    pub(super) fn of(plan: &DeliveryPlan, volumes: &BTreeMap<String, i64>) -> Self {
        let tasks = [&plan.pickup, &plan.dropoff];
        let mut packages = BTreeMap::new();
        for package in tasks.iter().flat_map(|task| &task.packages) {
            *packages.entry(package.kind.clone()).or_insert(0_i64) += i64::from(package.quantity);
        }
        let volume = packages.iter().try_fold(0_i64, |sum, (kind, count)| {
            Some(sum.saturating_add(volumes.get(kind)?.saturating_mul(*count)))
        });
        Self {
            meters: plan.route.meters.into(),
            seconds: plan.route.seconds.into(),
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

    /// Packages of a kind.
    pub(super) fn count(&self, kind: &str) -> i64 {
        self.packages.get(kind).copied().unwrap_or(0)
    }
}
