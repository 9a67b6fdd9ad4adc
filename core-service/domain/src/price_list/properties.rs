//! What holds for every list and every delivery.

use proptest::{collection::vec, prelude::*, strategy::Strategy as Generator};

use super::{
    tests::{gross, list, now, parse, plan, rule},
    *,
};
use crate::task::Package;

/// Conditions of every kind, some of which can't be told for some deliveries.
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

/// Pieces that make conditions, by chance.
const PARTS: [&str; 22] = [
    "distance",
    "weight",
    "0",
    "1.5",
    "+",
    "*",
    "/",
    "-",
    "<",
    "==",
    "&&",
    "||",
    "!",
    "?",
    ":",
    "(",
    ")",
    "tags[0]",
    "\"cold\"",
    "in tags",
    "size(tags)",
    "hours_until(dropoff)",
];

fn condition() -> impl Generator<Value = &'static str> {
    prop::sample::select(&CONDITIONS)
}

fn delivery() -> impl Generator<Value = DeliveryPlan> {
    let weight = prop::option::of(0..100_000_i64);
    let packages = (0..4_u32, 0..4_u32);
    let texts = (prop::option::of("Paris|Lyon"), vec("cold|big", 0..3));
    (0..20_000_u32, weight, packages, any::<bool>(), texts).prop_map(
        |(meters, weight, (large, small), time_slot, (locality, tags))| {
            let mut plan = plan(meters);
            plan.dropoff.weight = weight;
            plan.dropoff.time_slot = time_slot;
            plan.dropoff.address.locality = locality;
            plan.dropoff.tags = tags;
            let packages = [("XL", large), ("S", small)].map(|(kind, quantity)| Package {
                kind: kind.to_owned(),
                quantity,
            });
            plan.dropoff.packages = packages.to_vec();
            plan
        },
    )
}

fn price() -> impl Generator<Value = String> {
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
    #[test]
    fn net_and_tax_are_the_gross_amount(gross in any::<i64>(), rate in 0..=10_000_i64) {
        let rate = TaxRate::from_basis_points(rate).unwrap();
        let price = Price::from_gross(gross, rate, Currency::EUR);

        prop_assert_eq!(i128::from(price.net) + i128::from(price.tax), i128::from(gross));
        prop_assert!(price.tax.unsigned_abs() <= gross.unsigned_abs().div_ceil(2));
        prop_assert!(gross == 0 || price.tax == 0 || (price.tax > 0) == (gross > 0));
    }

    /// Each rule by itself says what it adds; the list adds it up, or takes the first.
    #[test]
    fn a_list_is_its_rules(
        plan in delivery(),
        list_of in vec((condition(), price()), 1..6),
    ) {
        let alone: Vec<_> = list_of
            .iter()
            .map(|(when, price)| gross(&list("sum", &rule(when, price)), &plan))
            .collect();
        let text = rules(&list_of);

        let sum = alone.iter().flatten().copied().reduce(|sum, amount| sum + amount);
        prop_assert_eq!(gross(&list("sum", &text), &plan), sum);
        let first = alone.iter().flatten().next().copied();
        prop_assert_eq!(gross(&list("first", &text), &plan), first);
    }

    /// In a sum of amounts order means nothing; where there are percentages, or the first rule
    /// decides, it does, and two calculations of the same agree all the same.
    #[test]
    fn order_matters_only_where_the_strategy_says_so(
        plan in delivery(),
        list_of in vec((condition(), price()), 1..6),
        turn in 0..6_usize,
    ) {
        let mut turned = list_of.clone();
        turned.rotate_left(turn % list_of.len());
        let (text, turned) = (rules(&list_of), rules(&turned));

        prop_assert_eq!(gross(&list("sum", &text), &plan), gross(&list("sum", &turned), &plan));
        let first = list("first", &text);
        let again = || first.calculate(&plan, "store", &now());
        prop_assert_eq!(again(), again());
    }

    /// What a calculation says it added is its price.
    #[test]
    fn a_calculation_adds_up(
        plan in delivery(),
        list_of in vec((condition(), price()), 1..6),
        percent in 0..30_000_i64,
    ) {
        let mut list_of = list_of;
        list_of.push(("true", format!("{{ percent = {percent} }}")));
        let calculation = list("sum", &rules(&list_of)).calculate(&plan, "", &now());

        let added: i64 = calculation.outcomes.iter().map(|outcome| outcome.amount).sum();
        prop_assert_eq!(calculation.price.map_or(0, Price::gross), added);
        prop_assert_eq!(calculation.outcomes.len(), list_of.len());
        for outcome in &calculation.outcomes {
            prop_assert!(outcome.matched || outcome.amount == 0, "{outcome:?}");
            prop_assert!(!outcome.reason.is_empty());
        }
    }

    /// Whatever passes the check can be calculated for any delivery.
    #[test]
    fn an_accepted_list_prices_any_delivery_or_says_why_not(
        plan in delivery(),
        parts in vec(prop::sample::select(&PARTS), 1..12),
    ) {
        let when = parts.join(" ");
        if let Ok(list) = parse("sum", &rule(&when, "1")) {
            let calculation = list.calculate(&plan, "store", &now());
            prop_assert_eq!(calculation.outcomes.len(), 1);
            prop_assert!(!calculation.outcomes[0].reason.is_empty(), "{when}");
        }
    }

    /// Amounts near the limit are an error, never a wrapped number.
    #[test]
    fn a_sum_is_exact_or_none(amounts in vec(any::<i64>(), 1..5)) {
        let list_of: Vec<_> = amounts.iter().map(|amount| ("true", amount.to_string())).collect();
        let mut exact = Some(0_i64);
        for amount in &amounts {
            exact = exact.and_then(|sum| sum.checked_add(*amount));
        }

        let price = gross(&list("sum", &rules(&list_of)), &plan(1));

        prop_assert_eq!(price, exact.filter(|sum| *sum >= 0));
    }
}
