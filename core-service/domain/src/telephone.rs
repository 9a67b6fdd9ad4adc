//! Parses telephone numbers into E.164.

use phonenumber::{Metadata, Mode, Type, country, metadata::DATABASE};

use crate::store::Country;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TelephoneError {
    // Existing clients compare this text: capital and full stop are part of it.
    #[error("The string supplied did not seem to be a phone number.")]
    NotATelephoneNumber,
}

/// The country of numbers in national form: the store's, if it has telephone numbers of its own,
/// otherwise the platform's.
pub fn national_country<'a>(store: Option<&'a Country>, platform: &'a Country) -> &'a Country {
    store
        .filter(|country| DATABASE.by_id(country.as_str()).is_some())
        .unwrap_or(platform)
}

/// Converts a number in international form, or in the national form of a country (ISO 3166-1
/// alpha-2), to E.164; `None` for a blank text. An extension is dropped: E.164 has none.
///
/// Only characters and length are checked, not the number ranges assigned in the country: any copy
/// of those is soon outdated.
pub fn parse(text: &str, country: &str) -> Result<Option<String>, TelephoneError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    to_e164(text, country)
        .map(Some)
        .ok_or(TelephoneError::NotATelephoneNumber)
}

/// In bytes: about twice the longest real spelling with brackets, spaces and an extension, in
/// full-width characters.
const MAX_LENGTH: usize = 128;
/// Digits with the country code (ITU-T E.164 §6).
const MAX_E164_DIGITS: usize = 15;
/// Words before an extension, besides punctuation alone.
const EXTENSION_WORDS: [&str; 5] = ["", "x", "ext", "extn", "extension"];
/// The kinds of numbers that a contact may have. The others may be shorter, such as the seven
/// digits of Canada's company numbers.
const CONTACT_NUMBERS: [Type; 7] = [
    Type::FixedLine,
    Type::Mobile,
    Type::Voip,
    Type::PersonalNumber,
    Type::TollFree,
    Type::SharedCost,
    Type::PremiumRate,
];

fn to_e164(text: &str, country: &str) -> Option<String> {
    if text.len() > MAX_LENGTH {
        return None;
    }
    let text = text.chars().map(half_width).collect::<String>();
    let text = text.trim().to_lowercase();
    let text = without_extension(text.strip_prefix("tel:").unwrap_or(&text))?;
    let (start, rest) = text.split_at(text.find(|c: char| c.is_ascii_digit())?);
    let is_valid = |text: &str| text.chars().all(|c| c.is_ascii_digit() || is_separator(c));
    if !is_valid(&start.replacen('+', "", 1)) || !is_valid(rest) {
        return None;
    }
    let digits: String = rest.chars().filter(char::is_ascii_digit).collect();

    let region = DATABASE.by_id(country);
    let international = if start.contains('+') {
        Some(digits.as_str())
    } else {
        without_international_prefix(region, &digits)
    };
    // Without the country: the parser would strip its national prefix from another's number.
    let parsed = match international {
        Some(digits) => phonenumber::parse(None, format!("+{digits}")),
        None => phonenumber::parse(Some(region?.id().parse::<country::Id>().ok()?), &digits),
    };
    let parsed = parsed.ok()?;
    let code = parsed.code().value();
    let e164 = parsed.format().mode(Mode::E164).to_string();
    let prefix = format!("+{code}");
    let stripped = e164.strip_prefix(&prefix)?;
    let written = match international {
        Some(digits) => digits.strip_prefix(&prefix[1..])?,
        None => &digits,
    };
    let national = national_number(&DATABASE.by_code(&code)?, written, stripped)?;
    let is_short_enough = prefix.len() - 1 + national.len() <= MAX_E164_DIGITS;
    is_short_enough.then(|| format!("{prefix}{national}"))
}

/// The national number without the prefix for calls within the country, such as the 0 of
/// `+33 (0)6 …`, which the parser has stripped, sometimes twice. A 0 that belongs to the number, as
/// in Italy, stays.
fn national_number<'a>(
    regions: &[&Metadata],
    written: &'a str,
    stripped: &'a str,
) -> Option<&'a str> {
    let without_prefix = |number: &'a str, region: &Metadata| {
        let prefix = region.national_prefix();
        prefix.and_then(|prefix| number.strip_prefix(prefix))
    };
    let has_pattern = |number: &str, region: &Metadata| {
        let pattern = region.descriptors().general().national_number();
        let found = pattern.find(number);
        found.is_some_and(|found| found.start() == 0 && found.end() == number.len())
    };
    regions
        .iter()
        .flat_map(|region| {
            let once = without_prefix(written, region);
            [Some(written), once, Some(stripped)].map(|number| (number, *region))
        })
        .filter_map(|(number, region)| Some((number?, region)))
        .filter(|(number, region)| has_possible_length(number, region))
        .find(|(number, region)| {
            has_pattern(number, region) || without_prefix(number, region).is_none()
        })
        .map(|(number, _)| number)
}

fn has_possible_length(number: &str, region: &Metadata) -> bool {
    CONTACT_NUMBERS.iter().any(|kind| {
        let numbers = region.descriptors().get(*kind);
        numbers.is_some_and(|numbers| {
            let mut lengths = numbers.possible_length().iter();
            lengths.any(|length| usize::from(*length) == number.len())
        })
    })
}

/// The digits after the prefix for calls to other countries, such as 00.
fn without_international_prefix<'a>(region: Option<&Metadata>, digits: &'a str) -> Option<&'a str> {
    let prefix = region?.international_prefix()?.find(digits)?;
    // No country code starts with 0.
    (prefix.start() == 0)
        .then(|| &digits[prefix.end()..])
        .filter(|rest| !rest.is_empty() && !rest.starts_with('0'))
}

/// The text before an extension; none if what follows the number is not an extension.
fn without_extension(text: &str) -> Option<&str> {
    let digit = text.find(|c: char| c.is_ascii_digit())?;
    let is_start = |c: char| c.is_ascii_lowercase() || matches!(c, ';' | ',' | '#' | '~');
    let Some(start) = text[digit..].find(is_start) else {
        return Some(text);
    };
    let (number, extension) = text.split_at(digit + start);
    let extension = extension.strip_suffix('#').unwrap_or(extension);
    let (word, digits) = extension.split_at(extension.find(|c: char| c.is_ascii_digit())?);
    let word: String = word.chars().filter(char::is_ascii_alphanumeric).collect();
    let is_extension = EXTENSION_WORDS.contains(&word.as_str())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '-');
    is_extension.then_some(number)
}

/// Full-width forms, as Asian keyboards write them, as ASCII (Unicode block FF00–FFEF).
fn half_width(c: char) -> char {
    match c {
        '！'..='～' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        c => c,
    }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '-' | '.' | '/' | '‐'..='―')
}

#[cfg(test)]
mod tests {
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
            ("+33612345678", "no country", "+33612345678"),
        ] {
            assert_eq!(parse(text, country), Ok(Some(expected.into())), "{text}");
        }
    }

    /// Whether a leading zero is part of the number depends on the number's country, not on the
    /// reader's.
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

    #[test]
    fn an_extension_is_read_and_dropped() {
        for text in [
            "0612345678;ext=12",
            "+33612345678;ext=12",
            "tel:+33612345678;ext=12",
            "+33 6 12 34 56 78;ext=12",
            "06 12 34 56 78 ext. 12",
            "06 12 34 56 78 EXT 12",
            "0612345678x12",
            "0612345678,12",
            "0612345678#12",
            "０６１２３４５６７８；ｅｘｔ＝１２",
        ] {
            assert_eq!(parse(text, "FR"), Ok(Some("+33612345678".into())), "{text}");
        }
        for text in [
            "0612345678;ext=",
            "0612345678 ext. Sylvie",
            "0612345678 or 12",
        ] {
            assert_eq!(
                parse(text, "FR"),
                Err(TelephoneError::NotATelephoneNumber),
                "{text}"
            );
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
            assert_eq!(
                parse(text, country),
                Err(TelephoneError::NotATelephoneNumber),
                "{text}"
            );
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
            assert_eq!(
                parse(text, "FR"),
                Err(TelephoneError::NotATelephoneNumber),
                "{text}"
            );
        }
        for country in ["no country", "AQ", "ZZ"] {
            assert_eq!(
                parse("0612345678", country),
                Err(TelephoneError::NotATelephoneNumber)
            );
        }
    }
}
