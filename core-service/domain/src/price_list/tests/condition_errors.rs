//! Rejected conditions, and the positions of their errors.

use super::*;

/// Conditions, the column of the error in each, and a part of the message.
const WRONG_CONDITIONS: &[(&str, usize, &str)] = &[
    ("distance <", 11, "not a condition: the text ends too early"),
    (
        "distance > 1 ? true",
        20,
        "not a condition: the text ends too early",
    ),
    (
        "(distance < 1",
        14,
        "not a condition: missing ')' at the end",
    ),
    (
        "distance < 1)",
        13,
        "not a condition: extraneous input ')' expecting the end",
    ),
    ("distance <= 1 &&& true", 17, "not a condition"),
    ("", 1, "the condition is empty"),
    (
        "1 < distanse",
        5,
        "unknown variable \"distanse\"; the variables are distance",
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
        "count needs the name of the package",
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
        "a task has no field \"adress\"; the fields are address",
    ),
    (
        "dropoff.address.city == \"Paris\"",
        16,
        "an address has no field \"city\"",
    ),
    ("distance.x == 1", 9, "this has no field \"x\""),
    ("dropoff.weekday.x == 1", 16, "this has no field \"x\""),
    ("distanse.x == 1", 1, "unknown variable \"distanse\""),
    ("distance", 1, "not true or false"),
    ("distance + 1", 10, "not true or false"),
    ("distance < 0 && weight", 17, "not true or false"),
    ("true || tags", 9, "not true or false"),
    ("distance < \"3000\"", 10, "can't be evaluated"),
    (
        "in_zone(dropoff, \"centre\")",
        8,
        "the first argument is not an address",
    ),
    ("in_zone(dropoff.address)", 8, "in_zone takes two arguments"),
    ("hours_until(store) > 1", 20, "the argument is not a task"),
    (
        "hours_until(pickup, dropoff) > 1",
        12,
        "hours_until takes one argument",
    ),
    (
        "count(tags, \"XL\") > 0",
        19,
        "the arguments must be packages",
    ),
    ("now < dropoff.before", 1, "unknown variable \"now\""),
    ("ceil(store) > 1", 13, "can't be evaluated"),
    ("distance % 2 == 0", 10, "use floor"),
    ("{\"a\": 1} == store", 1, "are not supported"),
    ("task.type == \"PICKUP\"", 1, "for = \"task\""),
    ("distance < 99999999999999999", 12, "too large"),
    ("store == r\"\\\"", 1, "without backslashes"),
    ("store == \"\"\"a\"\"\"", 1, "without backslashes"),
    ("store == \"a", 10, "not closed"),
];

#[test]
fn errors_in_conditions_are_reported_at_their_position() {
    for (when, column, message) in WRONG_CONDITIONS {
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
        // Line 9 is `when = '''…`: the condition starts after ten characters.
        assert_eq!(
            (mistake.line, mistake.column),
            (9, column + 10),
            "{when}: {}",
            mistake.message
        );
    }
}

#[test]
fn the_position_of_an_error_follows_from_the_form_of_the_string() {
    let text = rule("true", "1").replace("'''true'''", "\"\\u0020distanse < 1\"");
    let mistakes = parse("first", &text).err().unwrap_or_default();

    let positions: Vec<_> = mistakes.iter().map(|m| (m.line, m.column)).collect();
    assert_eq!(positions, [(9, 8)]);
    let mistakes = parse("first", &rule("\ndistanse < 1", "1")).err();
    let mistake = &mistakes.unwrap_or_default()[0];
    assert_eq!((mistake.line, mistake.column), (10, 1));
}

#[test]
fn the_condition_of_a_rule_for_tasks_is_true_or_false() {
    let text = rule("task.address", "1") + "for = \"task\"\n";
    let mistakes = parse("sum", &text).err().unwrap_or_default();

    let messages: Vec<_> = mistakes.iter().map(|m| m.message.as_str()).collect();
    assert_eq!(
        messages,
        ["this is not true or false; compare it with a value"]
    );
}
