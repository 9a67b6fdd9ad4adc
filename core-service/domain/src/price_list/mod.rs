//! Price lists: rules written by the operator that calculate and explain the price of a delivery.

mod calculation;
mod charge;
mod check;
mod condition;
mod definition;
mod functions;
mod parse;
mod sample_inputs;
#[cfg(test)]
mod tests;
mod variables;
mod warnings;

use std::collections::BTreeMap;

use cel::Context;
use iso_currency::Currency;
use jiff::{SignedDuration, Zoned};

pub use calculation::{Calculation, RuleOutcome};
#[cfg(test)]
pub(crate) use sample_inputs::sample;

use crate::{
    delivery::Delivery,
    money::{Price, TaxRate},
    task::TaskKind,
};
use calculation::{Calculator, Rule};
use definition::{Measure, Packages, Strategy};
use variables::{Scope, Variables};

/// A store's price list, checked.
pub struct PriceList {
    pub currency: Currency,
    tax_rate: TaxRate,
    strategy: Strategy,
    /// How long a calculated price is binding.
    pub quote_expiry: SignedDuration,
    /// `None` if the list does not restrict packages.
    packages: Option<Packages>,
    rules: Vec<Rule>,
    /// False only if no rule refers to a zone.
    pub references_zones: bool,
    /// Likely mistakes: gaps, rules that never match.
    pub warnings: Vec<String>,
    /// The functions that conditions may call.
    functions: Context<'static, 'static>,
}

impl PriceList {
    /// Whether packages of a type may be sent. A list that names no packages allows all.
    pub fn allows_package(&self, package_type: &str) -> bool {
        self.packages
            .as_ref()
            .is_none_or(|packages| packages.contains_key(package_type))
    }

    /// The types of packages that the list names.
    pub fn package_types(&self) -> impl Iterator<Item = &str> {
        let types = self.packages.iter().flat_map(Packages::keys);
        types.map(|kind| kind.get_ref().as_str())
    }

    /// Calculates the price of a delivery. `now` is in the store's time zone; conditions see the
    /// store's display name as the variable `store`.
    pub fn calculate(&self, delivery: &Delivery, store: &str, now: &Zoned) -> Calculation {
        let totals = Totals::of(delivery, self.packages.as_ref());
        let variables = Variables::new(delivery, &totals, store, now);
        let scopes = [None, Some(TaskKind::Pickup), Some(TaskKind::Dropoff)].map(|task| Scope {
            variables: &variables,
            task,
        });
        let [of_delivery, pickup, dropoff] = scopes
            .each_ref()
            .map(|scope| scope.context(&self.functions));
        let calculator = Calculator {
            strategy: self.strategy,
            totals: &totals,
            delivery: of_delivery,
            tasks: [pickup, dropoff],
            subtotal: None,
            skip_reason: None,
        };
        let (gross, outcomes) = calculator.apply_all(&self.rules);
        Calculation {
            price: gross.map(|gross| Price::from_gross(gross, self.tax_rate, self.currency)),
            outcomes,
        }
    }
}

/// The totals of a delivery that its price depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Totals {
    meters: i64,
    seconds: i64,
    /// Grams, both tasks together; `None` if neither has a weight.
    weight: Option<i64>,
    /// Of both tasks together, in the units of `[packages]`; `None` if the volume of a package is
    /// unknown.
    volume: Option<i64>,
    /// Of both tasks together, by kind.
    packages: BTreeMap<String, i64>,
}

impl Totals {
    /// Sums saturate at the largest number, so that charges on them fail with an overflow.
    fn of(delivery: &Delivery, types: Option<&Packages>) -> Self {
        let tasks = [&delivery.pickup, &delivery.dropoff];
        let mut packages = BTreeMap::new();
        for package in tasks.iter().flat_map(|task| &task.details.packages) {
            *packages.entry(package.kind.clone()).or_insert(0_i64) += i64::from(package.quantity);
        }
        let volume = packages.iter().try_fold(0_i64, |sum, (kind, count)| {
            let volume = types?.get(kind.as_str())?.volume?;
            Some(sum.saturating_add(volume.saturating_mul(*count)))
        });
        Self {
            meters: delivery.route.distance_meters.into(),
            seconds: delivery.route.duration_seconds.into(),
            weight: tasks
                .iter()
                .filter_map(|task| task.details.weight)
                .reduce(i64::saturating_add),
            volume,
            packages,
        }
    }

    fn measure(&self, measure: Measure) -> Option<i64> {
        match measure {
            Measure::Distance => Some(self.meters),
            Measure::Duration => Some(self.seconds),
            Measure::Weight => self.weight,
            Measure::Volume => self.volume,
        }
    }

    /// The number of packages of a kind.
    fn package_count(&self, kind: &str) -> i64 {
        self.packages.get(kind).copied().unwrap_or(0)
    }
}
