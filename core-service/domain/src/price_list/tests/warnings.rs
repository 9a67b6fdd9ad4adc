//! Warnings about accepted lists, and a property of conditions.

use super::*;

#[test]
fn likely_mistakes_cause_warnings() {
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
            vec![],
        ),
        (
            "first",
            vec!["distance <= 5000", "distance <= 3000"],
            vec!["\"R1\" never matches: earlier rules match every distance in its bounds"],
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
        (
            "first",
            vec!["distance == 0", "distance > 1"],
            vec!["no rule has a price for distance 1"],
        ),
        ("sum", vec!["true", "distance > 3000"], vec![]),
        ("sum", vec!["distance <= 3000", "distance >= 3000"], vec![]),
        ("sum", vec!["distance >= 0", "distance <= 3000"], vec![]),
        ("sum", vec!["distance <= 3000", "distance <= 5000"], vec![]),
        (
            "sum",
            vec!["distance <= 5000", "distance >= 3000 && distance <= 5000"],
            vec![],
        ),
        (
            "first",
            vec!["distance < 3000", "distance >= 3000", "distance <= 3000"],
            vec!["\"R2\" never matches: earlier rules match every distance in its bounds"],
        ),
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
            list(strategy, &text).warnings,
            expected,
            "{strategy} {rules:?}"
        );
    }
}

#[test]
fn a_percentage_before_any_amount_causes_a_warning() {
    // In basis points: 120 % of the amounts before it.
    let text = rule("true", "{ percent = 12000 }") + &rule("true", "500");

    assert_eq!(
        list("sum", &text).warnings,
        ["\"R\" adds nothing: no rule before it gives an amount"]
    );
}

proptest::proptest! {
    #[test]
    fn no_condition_causes_a_panic(when in "([a-z]{1,3}|distance|weight|[-+*/<>=!&|?:.,()\\[\\]{}'\"#é ]|[0-9]{1,19}){0,20}") {
        let _ = parse("sum", &format!("[[rule]]\nname = \"R\"\nwhen = '''{when}'''\nprice = 1\n"));
    }
}
