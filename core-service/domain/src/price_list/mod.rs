//! Price lists: rules written by the operator that calculate and explain the price of a delivery.

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

#[cfg(test)]
pub(crate) use sample_inputs::sample;

use crate::{
    delivery::Delivery,
    money::{Price, TaxRate},
    task::TaskKind,
};
use charge::{Charge, ChargeError};
use condition::Condition;
use definition::{Measure, Packages, Strategy, Target};
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
        let mut calculator = Calculator {
            strategy: self.strategy,
            totals: &totals,
            delivery: of_delivery,
            tasks: [pickup, dropoff],
            subtotal: None,
            skip_reason: None,
        };
        let rules = self.rules.iter();
        let mut outcomes: Vec<_> = rules.map(|rule| calculator.apply(rule)).collect();
        let gross = calculator.gross(&mut outcomes);
        Calculation {
            price: gross.map(|gross| Price::from_gross(gross, self.tax_rate, self.currency)),
            outcomes,
        }
    }
}

struct Rule {
    name: String,
    /// The condition's text, on one line and truncated, for explanations.
    condition_text: String,
    condition: Condition,
    target: Target,
    charge: Charge,
}

/// The price of a delivery, and its explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calculation {
    /// `None` if no rule gives an amount, or if the sum is negative or too large.
    pub price: Option<Price>,
    /// One for each rule, in the order of the list.
    pub outcomes: Vec<RuleOutcome>,
}

impl Calculation {
    /// The calculation of a store without a price list.
    pub fn without_list() -> Self {
        Self {
            price: None,
            outcomes: vec![RuleOutcome {
                rule: "(no price list)".to_owned(),
                matched: false,
                reason: "the store has no price list".to_owned(),
                amount: 0,
            }],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOutcome {
    pub rule: String,
    pub matched: bool,
    /// Why the rule matched or did not, for humans. No full stop.
    pub reason: String,
    /// The amount added by the rule, including tax, in minor units.
    pub amount: i64,
}

/// A calculation in progress.
struct Calculator<'a> {
    strategy: Strategy,
    totals: &'a Totals,
    /// The CEL scopes of the rules for the delivery, and for pickup and dropoff.
    delivery: Context<'a, 'a>,
    tasks: [Context<'a, 'a>; 2],
    subtotal: Option<i64>,
    /// `None` while rules are applied.
    skip_reason: Option<SkipReason>,
}

/// Why the remaining rules are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SkipReason {
    Priced,
    Failed,
}

impl SkipReason {
    fn text(self) -> &'static str {
        match self {
            Self::Priced => "an earlier rule gave the price",
            Self::Failed => "an earlier rule failed",
        }
    }
}

impl Calculator<'_> {
    fn apply(&mut self, rule: &Rule) -> RuleOutcome {
        let outcome = |matched, reason, amount| RuleOutcome {
            rule: rule.name.clone(),
            matched,
            reason,
            amount,
        };
        if let Some(reason) = self.skip_reason {
            return outcome(false, reason.text().to_owned(), 0);
        }
        let (times, reason) = match self.evaluate(rule) {
            Ok(evaluated) => evaluated,
            Err(reason) => return outcome(false, reason, 0),
        };

        let before = self.subtotal;
        for _ in 0..times {
            if let Err(error) = self.add(&rule.charge) {
                if error == ChargeError::Overflow {
                    self.skip_reason = Some(SkipReason::Failed);
                }
                let matched = !matches!(error, ChargeError::Missing(_));
                return outcome(matched, format!("{reason}, but {error}"), 0);
            }
        }
        if self.strategy == Strategy::First {
            self.skip_reason = Some(SkipReason::Priced);
        }
        let added = self
            .subtotal
            .unwrap_or(0)
            .saturating_sub(before.unwrap_or(0));
        outcome(true, reason, added)
    }

    /// Evaluates a rule's condition. Returns how many times the rule matches, at least once, and
    /// why; or why it does not match.
    fn evaluate(&self, rule: &Rule) -> Result<(usize, String), String> {
        let when = &rule.condition_text;
        let failed = |error: String| format!("can't evaluate {when}: {error}");
        if rule.target == Target::Delivery {
            let matches = rule.condition.evaluate(&self.delivery).map_err(failed)?;
            return matches
                .then(|| (1, format!("{when} is true")))
                .ok_or_else(|| format!("{when} is false"));
        }
        let mut matched = Vec::new();
        let mut failure = None;
        for (scope, name) in self.tasks.iter().zip(["the pickup", "the dropoff"]) {
            match rule.condition.evaluate(scope) {
                Ok(true) => matched.push(name),
                Ok(false) => {}
                Err(error) => failure = Some(failed(error)),
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

    fn add(&mut self, charge: &Charge) -> Result<(), ChargeError> {
        let amount = charge.amount(self.totals, self.subtotal)?;
        let sum = self.subtotal.unwrap_or(0).checked_add(amount);
        self.subtotal = Some(sum.ok_or(ChargeError::Overflow)?);
        Ok(())
    }

    /// The price including tax. A negative sum is no price; the reason of the last matching rule
    /// says so.
    fn gross(&self, outcomes: &mut [RuleOutcome]) -> Option<i64> {
        if self.skip_reason == Some(SkipReason::Failed) {
            return None;
        }
        let sum = self.subtotal?;
        if sum >= 0 {
            return Some(sum);
        }
        if let Some(last) = outcomes.iter_mut().rev().find(|outcome| outcome.matched) {
            last.reason.push_str(", but the sum is below zero");
        }
        None
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
