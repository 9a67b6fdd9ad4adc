//! Price lists: what a delivery costs, by rules that operators write, and why.

mod bands;
mod charge;
mod check;
mod condition;
mod definition;
mod functions;
mod load;
mod parse;
mod probe;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
mod variables;

use std::collections::{BTreeMap, BTreeSet};

use cel::Context;
use iso_currency::Currency;
use jiff::{SignedDuration, Zoned};

use crate::{
    definition::Mistake,
    delivery::DeliveryPlan,
    money::{Price, TaxRate},
    task::TaskKind,
    zone::Zones,
};
use charge::Charge;
use condition::{Condition, Unknown};
use definition::Target;
use load::Load;
use variables::{Circumstances, Variables};

pub use definition::Strategy;

/// A store's price list, checked.
pub struct PriceList {
    currency: Currency,
    tax_name: String,
    tax_rate: TaxRate,
    strategy: Strategy,
    promise: SignedDuration,
    /// `None`: the list does not say, so any will do.
    packages: Option<BTreeSet<String>>,
    /// By kind of package.
    volumes: BTreeMap<String, i64>,
    rules: Vec<Rule>,
    names_zones: bool,
    warnings: Vec<String>,
    /// What conditions may call.
    functions: Context<'static, 'static>,
}

struct Rule {
    name: String,
    /// As written, in one line and no longer than is good to read.
    when: String,
    condition: Condition,
    target: Target,
    charge: Charge,
}

/// A price, or none, and how it came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calculation {
    /// `None` if no rule matches, or if the rules make no price.
    pub price: Option<Price>,
    /// One for each rule, in the list's order.
    pub outcomes: Vec<RuleOutcome>,
}

/// How a rule fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOutcome {
    pub rule: String,
    pub matched: bool,
    /// For people: why, or why not. No full stop.
    pub reason: String,
    /// What it added, tax included, in minor units.
    pub amount: i64,
}

impl PriceList {
    /// Reads a definition (TOML) and says everything that is wrong with it.
    pub fn parse(definition: &str, zones: &Zones) -> Result<Self, Vec<Mistake>> {
        parse::price_list(definition, zones)
    }

    /// What is likely not meant: holes, overlaps, rules that never match.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether its rules may speak of zones.
    pub fn names_zones(&self) -> bool {
        self.names_zones
    }

    pub fn currency(&self) -> Currency {
        self.currency
    }

    pub fn tax_rate(&self) -> TaxRate {
        self.tax_rate
    }

    /// What the tax is called: `VAT`.
    pub fn tax_name(&self) -> &str {
        &self.tax_name
    }

    /// Whether packages of a kind may be sent; all, in a list that names none.
    pub fn knows_package(&self, kind: &str) -> bool {
        self.packages
            .as_ref()
            .is_none_or(|packages| packages.contains(kind))
    }

    /// The kinds of packages that the list names.
    pub fn package_kinds(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().flatten().map(String::as_str)
    }

    /// How long a calculated price stands.
    pub fn promise(&self) -> SignedDuration {
        self.promise
    }

    /// What a delivery costs. `now` is in the store's zone; `store` is what conditions compare
    /// the variable of that name with.
    pub fn calculate(&self, plan: &DeliveryPlan, store: &str, now: &Zoned) -> Calculation {
        let load = Load::of(plan, &self.volumes);
        let circumstances = Circumstances { plan, store, now };
        let variables = Variables::new(circumstances, &load);
        let delivery = variables.scope(&self.functions);
        // Most lists have rules for deliveries only.
        let are_asked_for = self.rules.iter().any(|rule| rule.target == Target::Task);
        let kinds = [TaskKind::Pickup, TaskKind::Dropoff];
        let kinds = kinds.into_iter().filter(|_| are_asked_for);
        let tasks: Vec<_> = kinds.map(|kind| variables.of_task(kind)).collect();
        let mut calculator = Calculator {
            strategy: self.strategy,
            load: &load,
            tasks: tasks.iter().map(|task| task.scope(&delivery)).collect(),
            delivery: &delivery,
            subtotal: None,
            decided: None,
        };
        let mut outcomes: Vec<_> = self
            .rules
            .iter()
            .map(|rule| calculator.apply(rule))
            .collect();
        let subtotal = calculator.total(&mut outcomes);
        Calculation {
            price: subtotal.map(|gross| Price::from_gross(gross, self.tax_rate, self.currency)),
            outcomes,
        }
    }
}

/// A calculation under way.
struct Calculator<'a> {
    strategy: Strategy,
    load: &'a Load,
    delivery: &'a Context<'a, 'a>,
    /// The pickup's and the dropoff's, if a rule is for tasks.
    tasks: Vec<Context<'a, 'a>>,
    subtotal: Option<i64>,
    /// Why no further rule counts.
    decided: Option<Decided>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decided {
    Priced,
    Failed,
}

impl Calculator<'_> {
    fn apply(&mut self, rule: &Rule) -> RuleOutcome {
        let outcome = |matched, reason, amount| RuleOutcome {
            rule: rule.name.clone(),
            matched,
            reason,
            amount,
        };
        match self.decided {
            Some(Decided::Priced) => {
                return outcome(false, "an earlier rule gave the price".into(), 0);
            }
            Some(Decided::Failed) => return outcome(false, "an earlier rule failed".into(), 0),
            None => {}
        }
        let (times, reason) = match self.matches(rule) {
            Ok(matched) => matched,
            Err(reason) => return outcome(false, reason, 0),
        };

        let before = self.subtotal;
        for _ in 0..times {
            match self.add(&rule.charge) {
                Ok(true) => {}
                Ok(false) => {
                    return outcome(
                        true,
                        format!("{reason}, but there is no amount yet to take a percentage of"),
                        0,
                    );
                }
                Err(charge::ChargeError::Missing(what)) => {
                    return outcome(false, format!("{reason}, but no {what} is given"), 0);
                }
                Err(error @ charge::ChargeError::Overflow) => {
                    self.decided = Some(Decided::Failed);
                    return outcome(true, format!("{reason}, but {error}"), 0);
                }
            }
        }
        if self.strategy == Strategy::First {
            self.decided = Some(Decided::Priced);
        }
        let added = self
            .subtotal
            .unwrap_or(0)
            .saturating_sub(before.unwrap_or(0));
        outcome(true, reason, added)
    }

    /// How often a rule matches, at least once, and why; or why it does not.
    fn matches(&self, rule: &Rule) -> Result<(usize, String), String> {
        let when = &rule.when;
        let unknown = |unknown: Unknown| format!("can't tell whether {when}: {unknown}");
        if rule.target == Target::Delivery {
            let holds = rule.condition.holds(self.delivery).map_err(unknown)?;
            return holds
                .then(|| (1, format!("{when} is true")))
                .ok_or_else(|| format!("{when} is false"));
        }
        let mut matched = Vec::new();
        let mut failure = None;
        for (context, name) in self.tasks.iter().zip(["the pickup", "the dropoff"]) {
            match rule.condition.holds(context) {
                Ok(true) => matched.push(name),
                Ok(false) => {}
                Err(error) => failure = Some(unknown(error)),
            }
        }
        if matched.is_empty() {
            return Err(failure.unwrap_or_else(|| format!("{when} is false for both tasks")));
        }
        Ok((
            matched.len(),
            format!("{when} is true for {}", matched.join(" and ")),
        ))
    }

    /// Adds a charge once; false for a percentage of nothing.
    fn add(&mut self, charge: &Charge) -> Result<bool, charge::ChargeError> {
        let Some(amount) = charge.amount(self.load, self.subtotal)? else {
            return Ok(false);
        };
        let total = self.subtotal.unwrap_or(0).checked_add(amount);
        self.subtotal = Some(total.ok_or(charge::ChargeError::Overflow)?);
        Ok(true)
    }

    /// The price with tax, if there is one; otherwise the last rule that counted says why not.
    fn total(&self, outcomes: &mut [RuleOutcome]) -> Option<i64> {
        if self.decided == Some(Decided::Failed) {
            return None;
        }
        let total = self.subtotal?;
        if total >= 0 {
            return Some(total);
        }
        if let Some(last) = outcomes.iter_mut().rev().find(|outcome| outcome.matched) {
            last.reason.push_str(", but the sum is below zero");
        }
        None
    }
}
