//! Limits of lists and of their conditions.

use super::*;

#[test]
fn the_size_of_conditions_is_limited() {
    let deep = "the condition is nested too deeply or too long";
    for (when, message) in [
        ("(".repeat(13) + "true" + &")".repeat(13), deep),
        ("[".repeat(4000), deep),
        ("!".repeat(4000) + "true", deep),
        ("-".repeat(65) + "1 > 1", deep),
        ("1".to_owned() + &" + 1".repeat(1000) + " > 1", deep),
        ("1".to_owned() + &" + 1".repeat(40) + " > 1", deep),
        ("1 in [".to_owned() + &"1 + ".repeat(30) + "1]", deep),
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
        "true".to_owned() + &" ".repeat(4092),
        // As many operators and decimal points as are allowed, and as deep.
        "1.5 + ".repeat(30) + "1.5 >= 1.5",
    ] {
        assert!(parse("first", &rule(&when, "1")).is_ok(), "{when}");
    }
    let longer = rule(&("true".to_owned() + &" ".repeat(4093)), "1");
    assert!(parse("first", &longer).is_err());
}

#[test]
fn a_quote_expires_within_seven_days() {
    let expiry = |text| {
        let definition = BANDS.replacen('\n', &format!("\nquote_expiry = \"{text}\"\n"), 1);
        PriceList::parse(&definition, &Zones::default()).map_err(|mistakes| mistakes.len())
    };

    assert!(expiry("168 hours").is_ok());
    for text in ["0 minutes", "169 hours"] {
        assert_eq!(expiry(text).err(), Some(1), "{text}");
    }
}

#[test]
fn a_list_has_at_most_a_mebibyte() {
    let text = rule("true", "1");
    let padded = |length: usize| format!("{text}{}", " ".repeat(length - text.len()));
    // The message ends with the length of the whole list, which has a header before the rules.
    let message = parse("sum", &padded(1_048_576)).err().unwrap()[0]
        .message
        .clone();
    let whole: usize = message.rsplit(' ').next().unwrap().parse().unwrap();
    let header = whole - 1_048_576;

    assert!(parse("sum", &padded(1_048_576 - header)).is_ok());
    assert!(parse("sum", &padded(1_048_577 - header)).is_err());
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
