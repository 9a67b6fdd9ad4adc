//! Rejected lists, and the positions of their errors.

use super::*;

/// Conditions do not loop, so the length of a list bounds the time of a calculation.
#[test]
fn the_largest_list_is_fully_evaluated() {
    let terms = "distance + 1 < 0 || ".repeat(99);
    let brackets = ("(".repeat(4), ")".repeat(4));
    let deep = format!("{terms}{}ceil(distance) == 3{}", brackets.0, brackets.1);
    let text = rule(&deep, "1").repeat(500);
    assert!(
        (1_000_000..1_048_000).contains(&text.len()),
        "{}",
        text.len()
    );

    let list = list("sum", &text);

    assert_eq!(gross(&list, &delivery_over(3)), Some(500));
    let longer = parse("sum", &(text + &" ".repeat(60_000))).err();
    assert!(
        longer.unwrap()[0]
            .message
            .contains("at most 1048576 bytes long")
    );
}

#[test]
fn the_volume_of_a_package_is_limited() {
    for (volume, is_valid) in [
        ("0", true),
        ("1000000000", true),
        ("1000000001", false),
        ("-1", false),
    ] {
        let definition = format!(
            "currency = \"EUR\"\ntax = {{ name = \"VAT\", rate = 2000 }}\nstrategy = \"sum\"\n\
             [packages]\nXL = {{ volume = {volume} }}\n{}",
            rule("volume > 0", "1")
        );
        let mistakes = PriceList::parse(&definition, &Zones::default()).err();
        let messages = mistakes.map(|mistakes| mistakes.iter().map(ToString::to_string).collect());
        let expected = vec!["5:1: a volume must be from 0 to 1000000000".to_owned()];
        assert_eq!(messages, (!is_valid).then_some(expected), "{volume}");
    }
}

#[test]
fn all_errors_of_a_list_are_reported_at_their_positions() {
    let definition = "currency = \"EURO\"\ntax = { name = \"VAT\", rate = 20000 }\nstrategy = \"first\"\n\
        quote_expiry = \"soon\"\n[[rule]]\nname = \" \"\nwhen = \"distanse < 1 || durration < 1\"\nprice = -1\n";
    let mistakes = PriceList::parse(definition, &Zones::default())
        .err()
        .unwrap_or_default();

    let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(
        mistakes,
        [
            "1:12: \"EURO\" is not an ISO 4217 code such as \"EUR\"",
            "2:30: 20000 is not a tax rate: write 0 to 10000 basis points (2000 is 20 %)",
            "4:16: \"soon\" is not a duration in hours, minutes and seconds such as \"15 minutes\", at most \"168 hours\" (7 days)",
            "6:8: a rule needs a name of 1 to 255 characters, without controls",
            "7:9: unknown variable \"distanse\"; the variables are distance, duration, weight, volume, packages, \
             pickup, dropoff, task, time_slot, tags, store",
            "7:25: unknown variable \"durration\"; the variables are distance, duration, weight, volume, packages, \
             pickup, dropoff, task, time_slot, tags, store",
            "8:9: -1 is not a price: it must not be negative",
        ]
    );
}

#[test]
fn the_name_of_a_rule_has_no_controls() {
    for control in [r"\u202e", r"\n", r"\u001b"] {
        let definition = BANDS.replace("\"Near\"", &format!("\"a{control}\""));
        let mistakes = PriceList::parse(&definition, &Zones::default())
            .err()
            .unwrap();
        let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        let expected = "7:8: a rule needs a name of 1 to 255 characters, without controls";
        assert_eq!(mistakes, [expected], "{control}");
    }
}

#[test]
fn a_quote_expiry_has_the_units_that_its_message_names() {
    let parse = |expiry: &str| {
        let definition = BANDS.replacen('\n', &format!("quote_expiry = \"{expiry}\"\n"), 1);
        PriceList::parse(&definition, &Zones::default()).map_err(|mistakes| mistakes[0].to_string())
    };

    for accepted in ["168 hours", "1 hour 30 minutes", "90 seconds"] {
        assert_eq!(parse(accepted).err(), None, "{accepted}");
    }
    for refused in ["7 days", "1 week", "169 hours"] {
        assert_eq!(
            parse(refused).err(),
            Some(format!(
                "1:16: \"{refused}\" is not a duration in hours, minutes and seconds such as \"15 minutes\", at most \"168 hours\" (7 days)"
            ))
        );
    }
}

#[test]
fn a_list_in_another_currency_than_the_stores_is_rejected() {
    let mistakes = |store| {
        let parsed = PriceList::parse_in(store, BANDS, &Zones::default());
        let mistakes = parsed.err().unwrap_or_default();
        mistakes.iter().map(ToString::to_string).collect::<Vec<_>>()
    };

    for store in [None, Some(Currency::EUR)] {
        assert_eq!(mistakes(store), [""; 0], "{store:?}");
    }
    assert_eq!(
        mistakes(Some(Currency::USD)),
        [
            "2:12: the store's currency is USD, not EUR: write the list in USD, or change the store's currency first"
        ]
    );
}

#[test]
fn a_hundred_mistakes_are_reported_at_most() {
    let mistakes = parse("sum", &rule("distanse < 1", "1").repeat(500));

    let mistakes = mistakes.err().unwrap_or_default();
    assert_eq!(mistakes.len(), 100);
}

#[test]
fn an_unknown_or_missing_key_or_a_value_of_a_wrong_type_is_reported_with_what_is_right() {
    for (replaced, by, expected) in [
        (
            "\"EUR\"",
            "978",
            "2:12: invalid type: integer `978`, expected a string",
        ),
        (
            "2000",
            "\"20\"",
            "3:30: invalid type: string \"20\", expected i64",
        ),
        (
            "2000",
            "2000, kind = 1",
            "3:36: unknown field `kind`, expected `name` or `rate`",
        ),
        (
            "\"first\"",
            "\"best\"",
            "4:12: unknown variant `best`, expected `first` or `sum`",
        ),
        (
            "\n\n",
            "\ncolour = 1\n",
            "5:1: unknown field `colour`, expected one of `currency`, `tax`, `strategy`, `quote_expiry`, `packages`, `rule`",
        ),
        (
            "\n\n",
            "\n[packages.XL]\nvolume = \"8\"\n",
            "6:10: invalid type: string \"8\", expected i64",
        ),
        (
            "\"distance <= 3000\"",
            "true",
            "8:8: invalid type: boolean `true`, expected a string",
        ),
        ("name = \"Near\"", "", "6:1: missing field `name`"),
        (
            "price = 499",
            "price = 499\nfor = \"all\"",
            "10:7: unknown variant `all`, expected `delivery` or `task`",
        ),
        (
            "price = 499",
            "price = 499\nprise = 1",
            "10:1: unknown field `prise`, expected one of `name`, `when`, `for`, `price`",
        ),
    ] {
        let mistakes = PriceList::parse(&BANDS.replacen(replaced, by, 1), &Zones::default()).err();
        let mistakes = mistakes.unwrap_or_default();
        let mistakes: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
        assert_eq!(mistakes, [expected]);
    }
}

#[test]
fn invalid_prices_are_rejected() {
    for (strategy, price, message) in [
        ("first", "4.99", "a whole number of minor units"),
        ("first", "\"499\"", "a whole number of minor units"),
        (
            "first",
            "{ percent = 11500 }",
            "percent needs strategy = \"sum\"",
        ),
        ("sum", "{ percent = -1 }", "must not be negative"),
        (
            "sum",
            "{ percent = 1, amount = 2 }",
            "a price is a whole number",
        ),
        (
            "sum",
            "{ step = \"distance\", amount = 450, every = 0 }",
            "a step must be above 0",
        ),
        (
            "sum",
            "{ step = \"distance\", amount = 450 }",
            "a price is a whole number",
        ),
        (
            "sum",
            "{ step = \"distance\", amount = 1, every = 1, above = -1 }",
            "`above`",
        ),
        (
            "sum",
            "{ step = \"colour\", amount = 450, every = 1 }",
            "a price is a whole number",
        ),
        (
            "sum",
            "{ per_package = \"XXL\", amount = 1 }",
            "unknown package \"XXL\"",
        ),
        (
            "sum",
            "{ per_package = \"XL\", amount = 1, from = 2 }",
            "a price is a whole number",
        ),
        (
            "sum",
            "{ per_package = \"XL\", amount = 1, from = 0, then = 1 }",
            "must be at least 1",
        ),
        ("sum", "{ amont = 1 }", "a price is a whole number"),
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
