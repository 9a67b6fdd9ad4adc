//! Numbers as people write them.

use super::*;

#[test]
fn a_number_becomes_e164() {
    for (text, country, expected) in [
        ("0612345678", "FR", "+33612345678"),
        ("06 12 34 56 78", "FR", "+33612345678"),
        ("06.12.34.56.78", "FR", "+33612345678"),
        ("+33612345678", "FR", "+33612345678"),
        ("+33 (0)6 12 34 56 78", "FR", "+33612345678"),
        ("(+33) 6 12 34 56 78", "FR", "+33612345678"),
        ("0033612345678", "FR", "+33612345678"),
        ("33612345678", "FR", "+33612345678"),
        (" tel:+33-6-12-34-56-78 ", "FR", "+33612345678"),
        ("０６１２３４５６７８", "FR", "+33612345678"),
        ("＋３３（０）６１２３４５６７８", "FR", "+33612345678"),
        ("+1 (212) 555-0123", "FR", "+12125550123"),
        ("030 123456", "DE", "+4930123456"),
        ("06 698 12345", "IT", "+390669812345"),
        ("8 812 123-45-67", "RU", "+78121234567"),
        ("011 15 2345-6789", "AR", "+5491123456789"),
        ("0470 12 34 56", "BE", "+32470123456"),
        // As long as a number may be.
        ("01 234567890123", "AT", "+431234567890123"),
        ("+33612345678", "no country", "+33612345678"),
    ] {
        assert_eq!(parse(text, country), Ok(Some(expected.into())), "{text}");
    }
}

/// Whether a leading zero is part of the number depends on the number's country, not on the
/// country that is passed.
#[test]
fn an_international_number_is_read_by_the_rules_of_its_own_country() {
    for text in [
        "+39 06 698 12345",
        "0039 06 698 12345",
        "+39 (0)6 698 12345",
    ] {
        assert_eq!(
            parse(text, "FR"),
            Ok(Some("+390669812345".into())),
            "{text}"
        );
    }
    for (text, expected) in [
        ("+225 01 23 45 67 89", "+2250123456789"),
        ("+7 812 123-45-67", "+78121234567"),
        ("011 33 6 12 34 56 78", "+33612345678"),
    ] {
        assert_eq!(parse(text, "US"), Ok(Some(expected.into())), "{text}");
    }
}

/// No country code starts with 0.
#[test]
fn an_international_prefix_before_a_zero_is_part_of_a_national_number() {
    let expected = "+390001234567".to_owned();
    assert_eq!(parse("00 0123 4567", "IT"), Ok(Some(expected)));
}

/// As copied from a list of contacts, or from a text that a browser may break.
#[test]
fn characters_without_a_visible_form_are_dropped() {
    for text in [
        "\u{202a}06 12 34 56 78\u{202c}",
        "\u{202d}+33 6 12 34 56 78\u{202c}",
        "\u{2066}06\u{2060}12345678\u{2069}",
        "\u{feff}06\u{200b}12\u{ad}34\u{200e}56\u{200f}78\u{fe0d}",
    ] {
        assert_eq!(
            parse(text, "FR"),
            Ok(Some("+33612345678".into())),
            "{text:?}"
        );
    }
    assert_eq!(parse("\u{200b} \u{feff}", "FR"), Ok(None));
}

#[test]
fn an_error_has_an_example_of_the_country() {
    for (country, examples) in [
        (
            "FR",
            "Write a number of FR as 06 12 34 56 78, one of any country as +33 6 12 34 56 78",
        ),
        (
            "US",
            "Write a number of US as (201) 555-0123, one of any country as +1 201-555-0123",
        ),
        (
            "AQ",
            "Write it with the code of its country, as +33 6 12 34 56 78",
        ),
    ] {
        let expected = format!("The string supplied did not seem to be a phone number. {examples}");
        assert_eq!(parse("0612", country), Err(expected), "{country}");
    }
    for region in ["DE", "ES", "IT", "GB", "BE", "CH", "JP", "MX", "AR"] {
        let error = parse("0612", region).unwrap_err();
        let (_, examples) = error.split_once(" as ").unwrap();
        let (national, international) = examples.split_once(", one of any country as ").unwrap();
        assert_eq!(
            parse(national, region),
            parse(international, region),
            "{error}"
        );
        assert!(matches!(parse(national, region), Ok(Some(_))), "{error}");
    }
}

#[test]
fn a_label_before_the_number_is_ignored() {
    for text in [
        "Tel. 06 12 34 56 78",
        "tél : 06 12 34 56 78",
        "Téléphone: +33 6 12 34 56 78",
        "Tfno. 00 33 6 12 34 56 78",
        "Handy: (+33) 6 12 34 56 78",
        "Tél. portable - 06 12 34 56 78",
        "TELEFONO 06 12 34 56 78",
        "cell:06 12 34 56 78 ext. 12",
    ] {
        assert_eq!(parse(text, "FR"), Ok(Some("+33612345678".into())), "{text}");
    }
    for text in [
        "Sylvie 06 12 34 56 78",
        "Tel. Sylvie 06 12 34 56 78",
        "Fax 06 12 34 56 78",
        "Tel. 2: 06 12 34 56 78",
        "Tel. 06 12 34 56 78 / 07 12 34 56 78",
    ] {
        assert_eq!(parse(text, "FR"), Err(not_a_number("FR")), "{text}");
    }
}

/// Mexico dropped the 1 before mobile numbers in 2019; many address books still have it.
#[test]
fn the_former_mobile_prefix_of_mexico_is_dropped() {
    for (text, country) in [
        ("+52 1 55 1234 5678", "FR"),
        ("+5215512345678", "MX"),
        ("00 52 1 55 1234 5678", "FR"),
        ("+52 55 1234 5678", "FR"),
        ("55 1234 5678", "MX"),
    ] {
        assert_eq!(
            parse(text, country),
            Ok(Some("+525512345678".into())),
            "{text}"
        );
    }
    for text in ["+52 1 55 1234 56789", "+52 2 55 1234 5678"] {
        assert_eq!(parse(text, "FR"), Err(not_a_number("FR")), "{text}");
    }
}

#[test]
fn an_extension_is_read_and_dropped() {
    for text in [
        "0612345678;ext=12",
        "+33612345678;ext=12",
        "tel:+33612345678;ext=12",
        "+33 6 12 34 56 78;ext=12",
        "06 12 34 56 78 ext. 12",
        "06 12 34 56 78 EXT 12",
        "06 12 34 56 78 poste 12",
        "06 12 34 56 78, poste : 12",
        "06 12 34 56 78 int. 12",
        "06 12 34 56 78 extensión 12",
        "06 12 34 56 78 Nebenstelle 12",
        "0612345678x12",
        "0612345678x1-2",
        "0612345678,12",
        "0612345678#12",
        "０６１２３４５６７８；ｅｘｔ＝１２",
    ] {
        assert_eq!(parse(text, "FR"), Ok(Some("+33612345678".into())), "{text}");
    }
    for text in [
        "0612345678;ext=",
        "0612345678x1a",
        "0612345678 ext. Sylvie",
        "0612345678 or 12",
        // A part of the number: without it, another line is called.
        "06 12 34 56 78 Durchwahl 12",
    ] {
        assert_eq!(parse(text, "FR"), Err(not_a_number("FR")), "{text}");
    }
}

#[test]
fn a_number_of_a_length_that_its_country_does_not_have_is_rejected() {
    for (text, country) in [
        ("061234567", "FR"),
        ("06123456789", "FR"),
        ("+3361234567", "FR"),
        ("+336123456789", "FR"),
        ("+3361234567", "US"),
        ("003361234567", "FR"),
        // Without the area code.
        ("555-0123", "US"),
        ("+1 555 0123", "FR"),
        ("+32 470 12 34", "FR"),
        ("0612345678 0712345678", "FR"),
    ] {
        assert_eq!(parse(text, country), Err(not_a_number(country)), "{text}");
    }
}

#[test]
fn a_national_number_is_of_the_stores_country_or_else_of_the_platforms() {
    let [france, belgium, antarctica] = ["FR", "BE", "AQ"].map(|code| code.parse().unwrap());
    for (store, expected) in [
        (Some(&belgium), &belgium),
        // It has no telephone numbers of its own.
        (Some(&antarctica), &france),
        (None, &france),
    ] {
        assert_eq!(national_country(store, &france), expected);
    }
}

#[test]
fn a_text_has_at_most_128_bytes() {
    for (length, is_read) in [(128, true), (129, false), (130, false)] {
        let text = format!("{:length$}", "+33612345678");
        let expected = is_read.then_some("+33612345678");
        assert_eq!(
            parse(&text, "FR").ok().flatten().as_deref(),
            expected,
            "{length}"
        );
    }
}

#[test]
fn a_blank_text_has_no_number() {
    for text in ["", " ", "\t\n"] {
        assert_eq!(parse(text, "FR"), Ok(None));
    }
}

#[test]
fn any_other_text_is_rejected() {
    let long = "0612345678".repeat(20);
    for text in [
        "Sylvie",
        "false",
        "+",
        "12",
        "0",
        "+33",
        "0612345678 Sylvie",
        "+336123456789012345",
        "+999123456789",
        "tel:",
        "+33612345678;phone-context=",
        "\u{0}0612345678",
        "٠٦١٢٣٤٥٦٧٨",
        "+33+612345678",
        "06+12345678",
        &long,
    ] {
        assert_eq!(parse(text, "FR"), Err(not_a_number("FR")), "{text}");
    }
    for country in ["no country", "AQ", "ZZ"] {
        assert_eq!(parse("0612345678", country), Err(not_a_number(country)));
    }
}
