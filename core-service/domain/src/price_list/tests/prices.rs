//! Prices and their explanations.

use super::*;

#[test]
fn a_calculation_gives_a_reason_for_each_rule() {
    let list = PriceList::parse(BANDS, &Zones::default()).unwrap();
    let outcome = |rule: &str, matched, reason: &str, amount| RuleOutcome {
        rule: rule.into(),
        matched,
        reason: reason.into(),
        amount,
    };

    assert_eq!(
        list.calculate(&delivery_over(3000), "", &now()),
        Calculation {
            price: Some(Price {
                net: 416,
                tax: 83,
                currency: Currency::EUR
            }),
            outcomes: vec![
                outcome("Near", true, "distance <= 3000 is true", 499),
                outcome("Far", false, "an earlier rule gave the price", 0),
            ],
        }
    );
    assert_eq!(
        list.calculate(&delivery_over(8001), "", &now()),
        Calculation {
            price: None,
            outcomes: vec![
                outcome("Near", false, "distance <= 3000 is false", 0),
                outcome("Far", false, "distance <= 8000 is false", 0),
            ],
        }
    );
}

#[test]
fn a_list_can_be_shared_between_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<PriceList>();
}

#[test]
fn a_long_condition_is_shortened_in_the_reason() {
    let long = format!("store\n==  {}", "\"\" || store == ".repeat(50) + "\"\"");
    let calculation = list("first", &rule(&long, "1")).calculate(&delivery_over(1), "é", &now());

    let reason = &calculation.outcomes[0].reason;
    assert!(
        reason.starts_with("store == \"\" || store") && reason.ends_with("… is false"),
        "{reason}"
    );
}

#[test]
fn omitted_settings_have_defaults() {
    let list = PriceList::parse(BANDS, &Zones::default()).unwrap();

    assert_eq!(list.quote_expiry, SignedDuration::from_mins(15));
    assert!(list.warnings.is_empty(), "{:?}", list.warnings);
    assert!(list.allows_package("anything"), "no packages are named");
    assert_eq!(list.package_types().count(), 0);
}

#[test]
fn a_list_with_a_rule_about_a_zone_references_zones() {
    for (when, refers) in [
        ("true", false),
        ("in_zone(dropoff.address, \"centre\")", true),
    ] {
        let list = list("sum", &rule(when, "1"));
        assert_eq!(list.references_zones, refers, "{when}");
    }
}

#[test]
fn only_named_packages_are_allowed() {
    let list = list("first", &rule("true", "1"));

    assert_eq!(list.package_types().collect::<Vec<_>>(), ["S", "XL"]);
    assert!(list.allows_package("XL"));
    assert!(!list.allows_package("XXL"));
}

#[test]
fn matching_rules_add_up_with_strategy_sum() {
    // `percent` is in basis points: 11500 is 115 %.
    for (rules, expected) in [
        ([("true", "599"), ("true", "100")], Some(699)),
        (
            [("true", "500"), ("true", "{ percent = 11500 }")],
            Some(575),
        ),
        ([("true", "500"), ("true", "{ percent = 8500 }")], Some(425)),
        ([("true", "{ percent = 8500 }"), ("true", "500")], Some(500)),
        ([("true", "{ percent = 8500 }"), ("false", "500")], None),
        ([("true", "500"), ("true", "-100")], Some(400)),
        ([("true", "500"), ("true", "-600")], None),
        ([("true", "9223372036854775807"), ("true", "1")], None),
        ([("distance > 5000", "500"), ("false", "1")], None),
    ] {
        let text = rules.map(|(when, price)| rule(when, price)).concat();
        assert_eq!(
            gross(&list("sum", &text), &delivery_over(3000)),
            expected,
            "{rules:?}"
        );
    }
}

#[test]
fn charges_with_the_smallest_allowed_values_are_calculated() {
    let mut delivery = delivery_over(3);
    delivery.dropoff.details.packages = vec![Package {
        kind: "XL".into(),
        quantity: 2,
    }];
    for (price, expected) in [
        (
            "{ step = \"distance\", amount = 5, every = 1, above = 0 }",
            10 + 3 * 5,
        ),
        (
            "{ per_package = \"XL\", amount = 5, from = 1, then = 3 }",
            10 + 2 * 3,
        ),
        ("{ percent = 0 }", 0),
    ] {
        let rules = rule("true", "10") + &rule("true", price);
        assert_eq!(
            gross(&list("sum", &rules), &delivery),
            Some(expected),
            "{price}"
        );
    }
}

#[test]
fn an_overflowing_sum_is_explained() {
    let rules = rule("true", "9223372036854775807") + &rule("true", "1") + &rule("true", "2");
    let calculation = list("sum", &rules).calculate(&delivery_over(1), "", &now());

    let reasons: Vec<_> = calculation
        .outcomes
        .iter()
        .map(|outcome| outcome.reason.as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "true is true",
            "true is true, but the amount is too large",
            "an earlier rule failed"
        ]
    );
}

#[test]
fn a_task_rule_counts_once_for_each_task_it_matches() {
    let text = "[[rule]]\nname = \"R\"\nfor = \"task\"\nwhen = 'WHEN'\nprice = 100\n";
    for strategy in ["first", "sum"] {
        for (when, expected) in [
            ("true", Some(200)),
            ("task.type == \"PICKUP\"", Some(100)),
            ("task.type == \"OTHER\"", None),
            (
                "task.weekday == \"We\" && slot_length(task) == 1.5",
                Some(200),
            ),
        ] {
            let list = list(strategy, &text.replace("WHEN", when));
            assert_eq!(
                gross(&list, &delivery_over(1)),
                expected,
                "{strategy} {when}"
            );
        }
    }
}
