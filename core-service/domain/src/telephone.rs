//! Parses telephone numbers into E.164.

use phonenumber::{Mode, country};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TelephoneError {
    // Existing clients compare this text: capital and full stop are part of it.
    #[error("The string supplied did not seem to be a phone number.")]
    NotATelephoneNumber,
}

/// Converts a number in international form, or in the national form of a country (ISO 3166-1
/// alpha-2), to E.164; `None` for a blank text. An extension is dropped: E.164 has none.
///
/// Only characters and length are checked, not the number ranges assigned in the country: any copy
/// of those is soon outdated.
pub fn parse(text: &str, country: &str) -> Result<Option<String>, TelephoneError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > MAX_LENGTH || !text.chars().all(is_telephone_character) {
        return Err(TelephoneError::NotATelephoneNumber);
    }

    let country: Option<country::Id> = country.parse().ok();
    let number =
        phonenumber::parse(country, text).map_err(|_| TelephoneError::NotATelephoneNumber)?;
    let e164 = number.format().mode(Mode::E164).to_string();
    let digits = e164.trim_start_matches('+').len();
    if number.code().value() == 0 || !E164_DIGITS.contains(&digits) {
        return Err(TelephoneError::NotATelephoneNumber);
    }
    Ok(Some(e164))
}

/// In bytes: about twice the longest real spelling with brackets, spaces and an extension.
const MAX_LENGTH: usize = 64;
/// Digits with the country code: at most 15 (ITU-T E.164 §6). The shortest numbers in use have a
/// country code of three digits and a subscriber number of four.
const E164_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

fn is_telephone_character(c: char) -> bool {
    c.is_ascii_digit()
        || c.is_whitespace()
        || matches!(c, '+' | '(' | ')' | '-' | '.' | '/' | '‐'..='―')
        || matches!(c, '#' | ';' | ':' | '=' | ',' | '~')
        // `tel:`, `ext.`, `x`, `phone-context`.
        || c.is_ascii_lowercase()
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
            ("0033612345678", "FR", "+33612345678"),
            (" tel:+33-6-12-34-56-78 ", "FR", "+33612345678"),
            ("+1 (212) 555-0123", "FR", "+12125550123"),
            ("030 123456", "DE", "+4930123456"),
            ("06 698 12345", "IT", "+390669812345"),
            ("+33612345678", "no country", "+33612345678"),
        ] {
            assert_eq!(parse(text, country), Ok(Some(expected.into())), "{text}");
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
            &long,
        ] {
            assert_eq!(
                parse(text, "FR"),
                Err(TelephoneError::NotATelephoneNumber),
                "{text}"
            );
        }
        assert_eq!(
            parse("0612345678", "no country"),
            Err(TelephoneError::NotATelephoneNumber)
        );
    }
}
