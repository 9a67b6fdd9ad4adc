//! A checked price list.

use cel::Context;
use iso_currency::Currency;
use jiff::{SignedDuration, Zoned};

use super::{
    calculation::{Calculation, Calculator, Rule},
    definition::{Packages, Strategy},
    totals::Totals,
    variables::{Scope, Variables},
};
use crate::{
    delivery::DeliveryPlan,
    money::{Price, TaxRate},
    task::TaskKind,
};

/// A store's price list, checked.
pub struct PriceList {
    pub currency: Currency,
    pub(super) tax_rate: TaxRate,
    pub(super) strategy: Strategy,
    /// How long a calculated price is binding.
    pub quote_expiry: SignedDuration,
    /// `None` if the list does not restrict packages.
    pub(super) packages: Option<Packages>,
    pub(super) rules: Vec<Rule>,
    /// False only if no rule refers to a zone.
    pub references_zones: bool,
    /// Likely mistakes: gaps, overlaps, rules that never match.
    pub warnings: Vec<String>,
    /// The functions that conditions may call.
    pub(super) functions: Context<'static, 'static>,
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
    pub fn calculate(&self, plan: &DeliveryPlan, store: &str, now: &Zoned) -> Calculation {
        let totals = Totals::of(plan, self.packages.as_ref());
        let variables = Variables::new(plan, &totals, store, now);
        let scopes = [None, Some(TaskKind::Pickup), Some(TaskKind::Dropoff)].map(|task| Scope {
            variables: &variables,
            task,
        });
        let [delivery, pickup, dropoff] = scopes
            .each_ref()
            .map(|scope| scope.context(&self.functions));
        let calculator = Calculator {
            strategy: self.strategy,
            totals: &totals,
            delivery,
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
