//! Applies the rules of a price list to a delivery, and explains the result.

use cel::Context;

use super::{
    Totals,
    charge::{Charge, ChargeError},
    condition::Condition,
    definition::{Strategy, Target},
};
use crate::money::Price;

pub(super) struct Rule {
    pub(super) name: String,
    /// The condition's text, on one line and truncated, for explanations.
    pub(super) condition_text: String,
    pub(super) condition: Condition,
    pub(super) target: Target,
    pub(super) charge: Charge,
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
pub(super) struct Calculator<'a> {
    pub(super) strategy: Strategy,
    pub(super) totals: &'a Totals,
    /// The CEL scopes of the rules for the delivery, and for pickup and dropoff.
    pub(super) delivery: Context<'a, 'a>,
    pub(super) tasks: [Context<'a, 'a>; 2],
    pub(super) subtotal: Option<i64>,
    /// `None` while rules are applied.
    pub(super) skip_reason: Option<SkipReason>,
}

/// Why the remaining rules are skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipReason {
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
    /// Applies all rules. Returns the price including tax, or `None`, and the outcomes.
    pub(super) fn apply_all(mut self, rules: &[Rule]) -> (Option<i64>, Vec<RuleOutcome>) {
        let mut outcomes: Vec<_> = rules.iter().map(|rule| self.apply(rule)).collect();
        let gross = self.gross(&mut outcomes);
        (gross, outcomes)
    }

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
