//! Price lists as operators write them, and what they make of deliveries.

use uuid::Uuid;

use super::*;
use crate::domain::{
    address::{Address, LatLng},
    delivery::Route,
    id::AddressId,
    task::{Package, TaskPlan, TimeWindow},
    zone::{Area, Polygon, Zones},
};

const BANDS: &str = r#"
currency = "EUR"
tax = { name = "VAT", rate = 2000 }
strategy = "first"

[[rule]]
name = "Near"
when = "distance <= 3000"
price = 499

[[rule]]
name = "Far"
when = "distance <= 8000"
price = 899
"#;

/// Wednesday 2 April 2025, 12:00 in Paris.
pub(super) fn now() -> Zoned {
    "2025-04-02T12:00:00+02:00[Europe/Paris]".parse().unwrap()
}

fn task() -> TaskPlan {
    let now = now().timestamp();
    TaskPlan {
        address: Address {
            id: AddressId(Uuid::nil()),
            street_address: "24 Rue de la Paix".into(),
            lat_lng: LatLng::new(48.87, 2.33).unwrap(),
            place_name: None,
            contact_name: None,
            telephone: None,
            description: None,
            postal_code: Some("75002".into()),
            locality: None,
            country: None,
        },
        window: TimeWindow {
            after: now + SignedDuration::from_hours(8),
            before: now + SignedDuration::from_mins(9 * 60 + 30),
        },
        time_slot: false,
        comments: String::new(),
        weight: None,
        packages: Vec::new(),
        tags: Vec::new(),
        metadata: BTreeMap::new(),
    }
}

pub(super) fn plan(meters: u32) -> DeliveryPlan {
    DeliveryPlan {
        pickup: task(),
        dropoff: task(),
        route: Route {
            meters,
            seconds: meters / 4,
        },
    }
}

pub(super) fn list(strategy: &str, rules: &str) -> PriceList {
    parse(strategy, rules).unwrap_or_else(|mistakes| panic!("{mistakes:?} in {rules}"))
}

pub(super) fn parse(strategy: &str, rules: &str) -> Result<PriceList, Vec<Mistake>> {
    let definition = format!(
        "currency = \"EUR\"\ntax = {{ name = \"VAT\", rate = 2000 }}\nstrategy = \"{strategy}\"\n\
         [packages]\nXL = {{ volume = 8 }}\nS = {{ volume = 1 }}\n{rules}"
    );
    let square = [
        (48.0, 2.0),
        (48.0, 3.0),
        (49.0, 3.0),
        (49.0, 2.0),
        (48.0, 2.0),
    ]
    .map(|(latitude, longitude)| LatLng::new(latitude, longitude).unwrap());
    let centre = Area::new(vec![Polygon::new(vec![square.to_vec()])]);
    PriceList::parse(
        &definition,
        &Zones::from_iter([("centre".to_owned(), centre)]),
    )
}

pub(super) fn rule(when: &str, price: &str) -> String {
    format!("[[rule]]\nname = \"R\"\nwhen = '''{when}'''\nprice = {price}\n")
}

pub(super) fn gross(list: &PriceList, plan: &DeliveryPlan) -> Option<i64> {
    list.calculate(plan, "stores/1", &now())
        .price
        .map(Price::gross)
}

/// Whether a condition matches a delivery.
fn matches(when: &str, plan: &DeliveryPlan) -> bool {
    gross(&list("first", &rule(when, "1")), plan).is_some()
}

#[test]
fn a_price_explains_itself() {
    let list = PriceList::parse(BANDS, &Zones::default()).unwrap();
    let outcome = |rule: &str, matched, reason: &str, amount| RuleOutcome {
        rule: rule.into(),
        matched,
        reason: reason.into(),
        amount,
    };

    assert_eq!(
        list.calculate(&plan(3000), "", &now()),
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
        list.calculate(&plan(8001), "", &now()),
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
fn a_list_is_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<PriceList>();
}

#[test]
fn a_reason_is_good_to_read() {
    let long = format!("store\n==  {}", "\"\" || store == ".repeat(50) + "\"\"");
    let calculation = list("first", &rule(&long, "1")).calculate(&plan(1), "é", &now());

    let reason = &calculation.outcomes[0].reason;
    assert!(
        reason.starts_with("store == \"\" || store") && reason.ends_with("… is false"),
        "{reason}"
    );
}

#[test]
fn what_a_list_leaves_out_has_a_default() {
    let list = PriceList::parse(BANDS, &Zones::default()).unwrap();

    assert_eq!(list.promise(), SignedDuration::from_mins(15));
    assert_eq!(list.tax_name(), "VAT");
    assert!(list.warnings().is_empty(), "{:?}", list.warnings());
    assert!(list.knows_package("anything"), "no packages are named");
    assert_eq!(list.package_kinds().count(), 0);
}

#[test]
fn named_packages_are_the_known_ones() {
    let list = list("first", &rule("true", "1"));

    assert_eq!(list.package_kinds().collect::<Vec<_>>(), ["S", "XL"]);
    assert!(list.knows_package("XL"));
    assert!(!list.knows_package("XXL"));
}

#[test]
fn rules_add_up_where_the_list_says_so() {
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
            gross(&list("sum", &text), &plan(3000)),
            expected,
            "{rules:?}"
        );
    }
}

#[test]
fn a_sum_that_does_not_fit_is_an_error_and_says_so() {
    let rules = rule("true", "9223372036854775807") + &rule("true", "1") + &rule("true", "2");
    let calculation = list("sum", &rules).calculate(&plan(1), "", &now());

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
            assert_eq!(gross(&list, &plan(1)), expected, "{strategy} {when}");
        }
    }
}

#[test]
fn numbers_compare_as_written_whatever_their_type() {
    for when in [
        "distance <= 3000",
        "distance <= 3000.0",
        "distance <= 3000u",
        "distance <= 0xBB8",
        "distance == 3000",
        "3e3 >= distance",
        "distance * 1.5 == 4500",
        "distance / 1000 == 3",
        "distance / 2000 > 1",
        "distance + 1 > 3000.5",
        "-distance < 0",
        "distance - 1 in [2999]",
        "ceil(distance / 2000) == 2",
        "floor(distance / 2000) == 1",
        "size(tags) * 2 == 0.0",
    ] {
        assert!(matches(when, &plan(3000)), "{when}");
    }
    for when in [
        "distance < 3000",
        "distance < 3000.0",
        "distance != 3000.0",
        "distance > 3e3",
    ] {
        assert!(!matches(when, &plan(3000)), "{when}");
    }
}

#[test]
fn conditions_see_the_whole_delivery() {
    let mut plan = plan(3000);
    plan.pickup.weight = Some(1500);
    plan.dropoff.weight = Some(500);
    plan.dropoff.time_slot = true;
    plan.dropoff.tags = vec!["fragile".into()];
    let packages = [("XL", 2), ("S", 1)].map(|(kind, quantity)| Package {
        kind: kind.into(),
        quantity,
    });
    plan.dropoff.packages = packages.to_vec();
    for when in [
        "weight == 2000",
        "duration == 750",
        "volume == 17",
        "count(packages, \"XL\") == 2 && packages[\"S\"] == 1 && packages.S == 1",
        "\"XL\" in packages",
        "time_slot",
        "\"fragile\" in tags && tags[0] == \"fragile\"",
        "store == \"stores/1\"",
        "dropoff.address.postal_code.startsWith(\"75\")",
        "dropoff.address.postal_code in [\"75001\", \"75002\"]",
        "in_zone(dropoff.address, \"centre\")",
        "hours_until(dropoff) == 9.5",
        "slot_length(pickup) == 1.5",
        "dropoff.after.getHours() == 20 && dropoff.before.getMinutes() + 0.5 == 30.5",
        "dropoff.before - dropoff.after > duration(\"1h\")",
        "dropoff.before > timestamp(\"2025-04-02T19:29:59Z\")",
        "distance > 1 ? time_slot : false",
        "!(distance < 3000 || weight < 1)",
    ] {
        assert!(matches(when, &plan), "{when}");
    }
    assert!(matches("count(packages, \"XL\") == 0", &self::plan(1)));
}

#[test]
fn what_a_delivery_lacks_matches_nothing_and_is_named() {
    for (when, reason) in [
        (
            "weight > 5",
            "can't tell whether weight > 5: no weight is given",
        ),
        (
            "dropoff.address.locality == \"Paris\"",
            "can't tell whether dropoff.address.locality == \"Paris\": no locality is given",
        ),
        (
            "weight > 5 && distance > 5000",
            "weight > 5 && distance > 5000 is false",
        ),
    ] {
        let calculation = list("first", &rule(when, "1")).calculate(&plan(3000), "", &now());
        assert_eq!(calculation.price, None);
        assert_eq!(calculation.outcomes[0].reason, reason);
    }
    let steps = rule(
        "true",
        "{ step = \"weight\", amount = 360, every = 40000, above = 40000 }",
    );
    let calculation = list("first", &steps).calculate(&plan(1), "", &now());
    assert_eq!(
        calculation.outcomes[0].reason,
        "true is true, but no weight is given"
    );
}

#[test]
fn a_wrong_condition_is_refused_where_it_is_wrong() {
    // The column within the condition, and what the message has in it.
    for (when, column, message) in [
        (
            "distance <",
            11,
            "not a condition: mismatched input the end",
        ),
        ("distance <= 1 &&& true", 17, "not a condition"),
        ("", 1, "a condition is missing"),
        (
            "1 < distanse",
            5,
            "unknown variable \"distanse\"; there are distance",
        ),
        (
            "\"é\" == store && weigth > 1",
            17,
            "unknown variable \"weigth\"",
        ),
        (
            "in_zone(dropoff.address, \"harbour\")",
            26,
            "unknown zone \"harbour\"",
        ),
        (
            "count(packages, \"XXL\") > 1",
            17,
            "unknown package \"XXL\"",
        ),
        ("\"XXL\" in packages", 1, "unknown package \"XXL\""),
        ("packages[\"XXL\"] == 1", 10, "unknown package \"XXL\""),
        ("packages.XXL == 1", 9, "unknown package \"XXL\""),
        (
            "count(packages, store) > 1",
            6,
            "count needs the package's name",
        ),
        ("matches(store, \"a\")", 8, "unknown function \"matches\""),
        (
            "tags.exists(t, t == \"a\")",
            12,
            "unknown function \"exists\"",
        ),
        ("has(dropoff.address)", 4, "unknown function \"has\""),
        (
            "dropoff.adress == 1",
            8,
            "a task has no \"adress\"; it has address",
        ),
        (
            "dropoff.address.city == \"Paris\"",
            16,
            "an address has no \"city\"",
        ),
        ("distance.x == 1", 9, "there is no \"x\" here"),
        ("distance", 1, "not true or false"),
        ("distance + 1", 10, "not true or false"),
        ("distance < 0 && weight", 17, "not true or false"),
        ("true || tags", 9, "not true or false"),
        ("distance < \"3000\"", 10, "can't be evaluated"),
        (
            "in_zone(dropoff, \"centre\")",
            8,
            "its first argument is no address",
        ),
        ("hours_until(store) > 1", 20, "its argument is no task"),
        ("ceil(store) > 1", 13, "can't be evaluated"),
        ("distance % 2 == 0", 10, "use floor"),
        ("{\"a\": 1} == store", 1, "mean nothing here"),
        ("task.type == \"PICKUP\"", 1, "for = \"task\""),
        ("distance < 99999999999999999", 12, "too large"),
        ("store == r\"\\\"", 1, "without backslashes"),
        ("store == \"a", 10, "not closed"),
    ] {
        let text = rule(when, "1");
        let mistakes = parse("first", &text).err().unwrap_or_default();
        let [mistake] = mistakes.as_slice() else {
            panic!("one mistake in {when}, not {mistakes:?}");
        };
        assert!(
            mistake.message.contains(message),
            "{when}: {}",
            mistake.message
        );
        // Line 9 is `when = '''…`: ten characters come before the condition.
        assert_eq!(
            (mistake.line, mistake.column),
            (9, column + 10),
            "{when}: {}",
            mistake.message
        );
    }
}

#[test]
fn conditions_are_bounded() {
    let deep = "the condition is nested too deep";
    for (when, message) in [
        ("(".repeat(13) + "true" + &")".repeat(13), deep),
        ("[".repeat(4000), deep),
        ("!".repeat(4000) + "true", deep),
        ("-".repeat(65) + "1 > 1", deep),
        ("1".to_owned() + &" + 1".repeat(1000) + " > 1", deep),
        ("1".to_owned() + &" + 1".repeat(40) + " > 1", deep),
        ("pickup".to_owned() + &".a".repeat(1000), deep),
        ("true ? true : ".repeat(200) + "true", deep),
        (
            "store == \"\n\" || ".to_owned() + &"(".repeat(3000),
            "not closed",
        ),
        ("true || ".repeat(600) + "true", "at most 4096 bytes"),
    ] {
        let text = rule(&when, "1");
        let mistakes = parse("first", &text).err().unwrap_or_default();
        assert!(
            mistakes
                .iter()
                .any(|mistake| mistake.message.contains(message)),
            "{when}: {mistakes:?}"
        );
    }
    for when in [
        "(".repeat(12) + "true" + &")".repeat(12),
        "distance == 1 || ".repeat(200) + "true",
        format!("store in [{}\"\"]", "\"75002\", ".repeat(400)),
    ] {
        assert!(parse("first", &rule(&when, "1")).is_ok(), "{when}");
    }
}

#[test]
fn a_list_has_at_most_five_hundred_rules() {
    assert!(parse("sum", &rule("true", "1").repeat(500)).is_ok());
    let mistakes = parse("sum", &rule("true", "1").repeat(501))
        .err()
        .unwrap_or_default();
    assert_eq!(
        mistakes[0].message,
        "a price list has at most 500 rules, this one 501"
    );
}

#[test]
fn every_mistake_of_a_list_is_reported_at_its_place() {
    let definition = "currency = \"EURO\"\ntax = { name = \"VAT\", rate = 20000 }\nstrategy = \"first\"\n\
        promise = \"soon\"\n[[rule]]\nname = \" \"\nwhen = \"distanse < 1 || durration < 1\"\nprice = -1\n";
    let mistakes = PriceList::parse(definition, &Zones::default())
        .err()
        .unwrap_or_default();

    let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(
        mistakes,
        [
            "1:12: \"EURO\" is no ISO 4217 code such as \"EUR\"",
            "2:30: 20000 is no tax rate: from 0 to 10000 basis points, 2000 is 20 %",
            "4:11: \"soon\" is no time such as \"15 minutes\", at most 7 days",
            "6:8: a rule needs a name of 1 to 255 characters",
            "8:9: -1 is no price: it must not be negative",
            "7:9: unknown variable \"distanse\"; there are distance, duration, weight, volume, packages, \
             pickup, dropoff, task, time_slot, tags, store",
            "7:25: unknown variable \"durration\"; there are distance, duration, weight, volume, packages, \
             pickup, dropoff, task, time_slot, tags, store",
        ]
    );
}

#[test]
fn prices_of_no_known_form_are_refused() {
    for (strategy, price, message) in [
        ("first", "4.99", "a whole number of minor units"),
        ("first", "\"499\"", "a whole number of minor units"),
        (
            "first",
            "{ percent = 11500 }",
            "percent needs strategy = \"sum\"",
        ),
        ("sum", "{ percent = -1 }", "must not be negative"),
        ("sum", "{ percent = 1, amount = 2 }", "a price is a number"),
        (
            "sum",
            "{ step = \"distance\", amount = 450, every = 0 }",
            "a step must be above 0",
        ),
        (
            "sum",
            "{ step = \"distance\", amount = 450 }",
            "a price is a number",
        ),
        (
            "sum",
            "{ step = \"distance\", amount = 1, every = 1, above = -1 }",
            "`above`",
        ),
        (
            "sum",
            "{ step = \"colour\", amount = 450, every = 1 }",
            "unknown variant `colour`",
        ),
        (
            "sum",
            "{ per_package = \"XXL\", amount = 1 }",
            "unknown package \"XXL\"",
        ),
        (
            "sum",
            "{ per_package = \"XL\", amount = 1, from = 2 }",
            "a price is a number",
        ),
        (
            "sum",
            "{ per_package = \"XL\", amount = 1, from = 0, then = 1 }",
            "counts from 1",
        ),
        ("sum", "{ amont = 1 }", "unknown field `amont`"),
    ] {
        let mistakes = parse(strategy, &rule("true", price))
            .err()
            .unwrap_or_default();
        let [mistake] = mistakes.as_slice() else {
            panic!("one mistake in {price}, not {mistakes:?}");
        };
        assert!(
            mistake.message.contains(message),
            "{price}: {}",
            mistake.message
        );
        assert_eq!(mistake.line, 10, "{price}");
    }
}

#[test]
fn likely_slips_are_warned_of() {
    for (strategy, rules, expected) in [
        (
            "first",
            vec!["distance <= 3000", "distance > 3000 && distance <= 5000"],
            vec![],
        ),
        (
            "first",
            vec!["distance <= 3000", "distance <= 5000"],
            vec![],
        ),
        ("first", vec!["distance < 3000", "3000 <= distance"], vec![]),
        (
            "first",
            vec!["distance <= 3000", "distance >= 3500"],
            vec!["no rule has a price for distance from 3001 to 3499"],
        ),
        (
            "first",
            vec!["distance < 3000", "distance > 3000"],
            vec!["no rule has a price for distance 3000"],
        ),
        (
            "first",
            vec!["distance > 100"],
            vec!["no rule has a price for distance from 0 to 100"],
        ),
        (
            "first",
            vec!["distance <= 3000", "distance >= 2500 && distance < 6000"],
            vec!["\"R1\" and \"R0\" overlap for distance from 2500 to 3000"],
        ),
        (
            "first",
            vec!["distance <= 5000", "distance <= 3000"],
            vec!["\"R1\" never matches: earlier rules take every distance in its bounds"],
        ),
        (
            "first",
            vec!["weight < 10 && weight > 20", "true"],
            vec!["\"R0\" never matches: no weight is in its bounds"],
        ),
        (
            "first",
            vec!["true", "distance < 1"],
            vec!["\"R1\" never matches: \"R0\" always does"],
        ),
        ("sum", vec!["true", "distance > 3000"], vec![]),
        (
            "sum",
            vec!["distance <= 3000", "distance >= 3000"],
            vec!["\"R1\" and \"R0\" overlap for distance 3000"],
        ),
        ("sum", vec!["distance >= 0", "distance <= 3000"], vec![]),
        (
            "first",
            vec!["distance < 10 && time_slot", "distance > 100"],
            vec![],
        ),
    ] {
        let text: String = rules
            .iter()
            .enumerate()
            .map(|(index, when)| rule(when, "1").replace("\"R\"", &format!("\"R{index}\"")))
            .collect();
        assert_eq!(
            list(strategy, &text).warnings(),
            expected,
            "{strategy} {rules:?}"
        );
    }
}

#[test]
fn a_percentage_before_any_amount_is_warned_of() {
    let text = rule("true", "{ percent = 12000 }") + &rule("true", "500");

    assert_eq!(
        list("sum", &text).warnings(),
        ["\"R\" adds nothing: no rule before it gives an amount"]
    );
}

proptest::proptest! {
    #[test]
    fn any_definition_is_read_or_refused(when in "([a-z]{1,3}|distance|weight|[-+*/<>=!&|?:.,()\\[\\]{}'\"#é ]|[0-9]{1,19}){0,20}") {
        let _ = parse("sum", &format!("[[rule]]\nname = \"R\"\nwhen = '''{when}'''\nprice = 1\n"));
    }

    #[test]
    fn the_order_of_rules_does_not_matter_in_a_sum_of_amounts(amounts in proptest::collection::vec(0..100_000_i64, 1..6)) {
        let rules: Vec<_> = amounts.iter().map(|amount| rule("true", &amount.to_string())).collect();
        let reversed: Vec<_> = rules.iter().rev().cloned().collect();
        let total = Some(amounts.iter().sum());

        proptest::prop_assert_eq!(gross(&list("sum", &rules.concat()), &plan(1)), total);
        proptest::prop_assert_eq!(gross(&list("sum", &reversed.concat()), &plan(1)), total);
    }
}
