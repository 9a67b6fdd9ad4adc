//! Properties of any price list and any delivery.

use std::cell::Cell;

use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

use super::*;
use crate::task::Package;

/// Conditions of every kind. Some cannot be evaluated for deliveries that lack a value.
const CONDITIONS: [&str; 10] = [
    "true",
    "distance <= 3000",
    "distance > 3000 && distance <= 8000.5",
    "weight > 5000",
    "weight > 5000 || distance < 100",
    "count(packages, \"XL\") > 1",
    "time_slot || \"cold\" in tags",
    "in_zone(dropoff.address, \"centre\")",
    "hours_until(dropoff) < 9 ? distance < 4000 : weight < 10",
    "dropoff.address.locality == \"Paris\"",
];

/// Numbers of every kind, one of which some deliveries lack.
const NUMBERS: [&str; 8] = [
    "distance",
    "weight",
    "0",
    "3000",
    "1.5",
    "size(tags)",
    "count(packages, \"XL\")",
    "hours_until(dropoff)",
];

/// Calculations with numbers, nested in brackets. No divisor is zero: a condition that compares
/// such a quotient is rejected.
fn number() -> impl Strategy<Value = String> {
    let operator = prop::sample::select(&["+", "-", "*"]);
    let leaf = prop::sample::select(&NUMBERS).prop_map(str::to_owned);
    leaf.prop_recursive(2, 4, 2, move |inner| {
        prop_oneof![
            (inner.clone(), operator.clone(), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            inner.prop_map(|dividend| format!("({dividend} / 2.5)")),
        ]
    })
}

/// Conditions of the whole grammar. A few are nested more deeply than permitted.
fn nested_condition() -> impl Strategy<Value = String> {
    let comparison = prop::sample::select(&["<", "<=", ">", ">=", "==", "!="]);
    let leaf = prop_oneof![
        condition().prop_map(|condition| format!("({condition})")),
        (number(), comparison, number())
            .prop_map(|(left, comparison, right)| format!("{left} {comparison} {right}")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let operator = prop::sample::select(&["&&", "||"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            inner.clone().prop_map(|operand| format!("!({operand})")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(when, yes, no)| format!("(({when}) ? {yes} : {no})")),
        ]
    })
}

fn condition() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&CONDITIONS)
}

fn delivery() -> impl Strategy<Value = Delivery> {
    let weight = prop::option::of(0..100_000_i64);
    let packages = (0..4_u32, 0..4_u32);
    let texts = (prop::option::of("Paris|Lyon"), vec("cold|big", 0..3));
    (0..20_000_u32, weight, packages, any::<bool>(), texts).prop_map(
        |(meters, weight, (large, small), has_time_slot, (locality, tags))| {
            let mut delivery = delivery_over(meters);
            delivery.dropoff.details.weight = weight;
            delivery.dropoff.has_time_slot = has_time_slot;
            delivery.dropoff.address.locality = locality;
            delivery.dropoff.details.tags = tags;
            let packages = [("XL", large), ("S", small)].map(|(kind, quantity)| Package {
                kind: kind.to_owned(),
                quantity,
            });
            delivery.dropoff.details.packages = packages.to_vec();
            delivery
        },
    )
}

fn price() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..10_000_i64).prop_map(|amount| amount.to_string()),
        (1..900_i64, 1..5000_i64, 0..5000_i64).prop_map(|(amount, every, above)| format!(
            "{{ step = \"distance\", amount = {amount}, every = {every}, above = {above} }}"
        )),
        (1..900_i64, 1..900_i64).prop_map(|(amount, then)| format!(
            "{{ per_package = \"XL\", amount = {amount}, from = 2, then = {then} }}"
        )),
    ]
}

fn rules(rules: &[(&str, String)]) -> String {
    let rules = rules.iter().map(|(when, price)| rule(when, price));
    rules.collect()
}

proptest! {
    /// Each rule is priced in a list of its own. The price of the list with all rules is the sum
    /// of these prices, or the first of them.
    #[test]
    fn a_list_combines_the_prices_of_its_rules(
        delivery in delivery(),
        rule_list in vec((condition(), price()), 1..6),
    ) {
        let prices: Vec<_> = rule_list
            .iter()
            .map(|(when, price)| gross(&list("sum", &rule(when, price)), &delivery))
            .collect();
        let text = rules(&rule_list);

        let sum = prices.iter().flatten().copied().reduce(|sum, amount| sum + amount);
        prop_assert_eq!(gross(&list("sum", &text), &delivery), sum);
        let first = prices.iter().flatten().next().copied();
        prop_assert_eq!(gross(&list("first", &text), &delivery), first);
    }

    #[test]
    fn the_order_of_rules_does_not_affect_a_sum_and_calculations_are_repeatable(
        delivery in delivery(),
        rule_list in vec((condition(), price()), 1..6),
        shift in 0..6_usize,
    ) {
        let mut rotated = rule_list.clone();
        rotated.rotate_left(shift % rule_list.len());
        let (text, rotated) = (rules(&rule_list), rules(&rotated));

        prop_assert_eq!(gross(&list("sum", &text), &delivery), gross(&list("sum", &rotated), &delivery));
        let first = list("first", &text);
        let calculate = || first.calculate(&delivery, "store", &now());
        prop_assert_eq!(calculate(), calculate());
    }

    #[test]
    fn the_amounts_of_the_outcomes_add_up_to_the_price(
        delivery in delivery(),
        rule_list in vec((condition(), price()), 1..6),
        percent in 0..30_000_i64,
    ) {
        let mut rule_list = rule_list;
        rule_list.push(("true", format!("{{ percent = {percent} }}")));
        let calculation = list("sum", &rules(&rule_list)).calculate(&delivery, "", &now());

        let added: i64 = calculation.outcomes.iter().map(|outcome| outcome.amount).sum();
        prop_assert_eq!(calculation.price.map_or(0, Price::gross), added);
        prop_assert_eq!(calculation.outcomes.len(), rule_list.len());
        for outcome in &calculation.outcomes {
            prop_assert!(outcome.matched || outcome.amount == 0, "{outcome:?}");
            prop_assert!(!outcome.reason.is_empty());
        }
    }

    /// A list whose sum overflows or is negative has no price.
    #[test]
    fn a_sum_is_exact_or_none(amounts in vec(any::<i64>(), 1..5)) {
        let rule_list: Vec<_> = amounts.iter().map(|amount| ("true", amount.to_string())).collect();
        let mut exact = Some(0_i64);
        for amount in &amounts {
            exact = exact.and_then(|sum| sum.checked_add(*amount));
        }

        let price = gross(&list("sum", &rules(&rule_list)), &delivery_over(1));

        prop_assert_eq!(price, exact.filter(|sum| *sum >= 0));
    }
}

#[test]
fn a_condition_of_the_grammar_has_an_outcome_with_a_reason_for_any_delivery() {
    let (cases, accepted) = (Cell::new(0), Cell::new(0));
    TestRunner::default()
        .run(&(delivery(), nested_condition()), |(delivery, when)| {
            cases.set(cases.get() + 1);
            let list = match parse("sum", &rule(&when, "7")) {
                Ok(list) => list,
                Err(mistakes) => {
                    let is_too_deep =
                        |mistake: &Mistake| mistake.to_string().contains("too deeply");
                    prop_assert!(mistakes.iter().all(is_too_deep), "{mistakes:?}");
                    return Ok(());
                }
            };
            accepted.set(accepted.get() + 1);
            let calculation = list.calculate(&delivery, "store", &now());
            let [outcome] = calculation.outcomes.as_slice() else {
                panic!("{calculation:?}");
            };
            prop_assert_eq!(outcome.amount, if outcome.matched { 7 } else { 0 });
            prop_assert!(!outcome.reason.is_empty(), "{when}");
            Ok(())
        })
        .unwrap();
    assert!(
        10 * accepted.get() >= 9 * cases.get(),
        "{} of {} accepted",
        accepted.get(),
        cases.get()
    );
}
