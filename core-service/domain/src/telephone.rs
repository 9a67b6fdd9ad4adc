//! Parses telephone numbers into E.164.

use phonenumber::{Metadata, Mode, Type, country, metadata::DATABASE};

use crate::{store::Country, visible::visible};

#[cfg(test)]
mod tests;

/// How the error for any other text begins. Existing clients show it, with its capital and full stop.
const NOT_A_NUMBER: &str = "The string supplied did not seem to be a phone number.";
/// The kinds of numbers that the error gives as an example: the first that the country has.
const EXAMPLES: [Type; 2] = [Type::Mobile, Type::FixedLine];

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
pub fn parse(text: &str, country: &str) -> Result<Option<String>, String> {
    let text = visible(text);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let number = to_e164(&text, country).map(Some);
    number.ok_or_else(|| not_a_number(country))
}

/// The error, with examples of the country of numbers in national form.
fn not_a_number(country: &str) -> String {
    let example = || {
        let descriptors = DATABASE.by_id(country)?.descriptors();
        let mut of_kinds = EXAMPLES.iter().filter_map(|kind| descriptors.get(*kind));
        let number = of_kinds.find_map(|numbers| numbers.example())?;
        let number = phonenumber::parse(country.parse().ok(), number).ok()?;
        let national = number.format().mode(Mode::National).to_string();
        Some((
            national,
            number.format().mode(Mode::International).to_string(),
        ))
    };
    match example() {
        Some((national, international)) => format!(
            "{NOT_A_NUMBER} Write a number of {country} as {national}, one of any country as {international}"
        ),
        None => {
            format!("{NOT_A_NUMBER} Write it with the code of its country, as +33 6 12 34 56 78")
        }
    }
}

/// In bytes: about twice the longest real spelling with brackets, spaces and an extension, in
/// full-width characters.
const MAX_LENGTH: usize = 128;
/// Digits with the country code (ITU-T E.164 §6).
const MAX_E164_DIGITS: usize = 15;
/// Words before a number, in English, French, German, Spanish and Italian.
const LABELS: &str = "cell cellulare gsm handy mobil mobile movil móvil phone portable tel telefon \
    telefono telephone teléfono telf tfno tlf tno tél téléphone";
/// Words before an extension, which may also follow punctuation alone. `Durchwahl` is left out: its
/// digits are dialled as a part of the number.
const EXTENSION_WORDS: &str =
    "x ext extn extension extensión int interne interno nebenstelle poste";
/// The country code of Mexico and the former prefix of its mobile numbers, dropped in 2019
/// (numbering plan of 2018). The library's metadata does not have it any more.
const FORMER_MOBILE_PREFIX: (u16, &str) = (52, "1");
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
    let lower_case = text
        .chars()
        .map(half_width)
        .collect::<String>()
        .to_lowercase();
    let number = without_extension(without_label(lower_case.trim())?)?;
    let (start, rest) = number.split_at(number.find(|c: char| c.is_ascii_digit())?);
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
    }
    .ok()?;
    let code = parsed.code().value();
    let e164 = parsed.format().mode(Mode::E164).to_string();
    let prefix = format!("+{code}");
    let stripped = e164.strip_prefix(&prefix)?;
    let written = match international {
        Some(digits) => digits.strip_prefix(&prefix[1..])?,
        None => &digits,
    };
    let regions = DATABASE.by_code(&code)?;
    let (former_code, former_prefix) = FORMER_MOBILE_PREFIX;
    let national = national_number(&regions, written, stripped).or_else(|| {
        let number = written.strip_prefix(former_prefix)?;
        (code == former_code).then(|| national_number(&regions, number, number))?
    })?;
    let is_short_enough = prefix.len() - 1 + national.len() <= MAX_E164_DIGITS;
    is_short_enough.then(|| format!("{prefix}{national}"))
}

/// The national number: the first of these that is possible in a region of the country code.
/// `written` are the digits as given, without the country code; the same without the prefix for calls
/// within the country, such as the 0 of `+33 (0)6 …`; and `stripped`, from which the parser has
/// removed that prefix, sometimes twice. A 0 that belongs to the number, as in Italy, stays.
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
        // Digits like the prefix belong to the number only if the region's pattern has them.
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

/// The text after labels such as `Tel.:`; none if there is another word before the number.
fn without_label(text: &str) -> Option<&str> {
    let start = text.find(|c: char| c.is_ascii_digit() || matches!(c, '+' | '('))?;
    let (label, number) = text.split_at(start);
    label
        .split(|c| is_separator(c) || c == ':')
        .all(|word| word.is_empty() || is_in(LABELS, word))
        .then_some(number)
}

/// The text before an extension; none if what follows the number is not an extension.
fn without_extension(text: &str) -> Option<&str> {
    let digit = text.find(|c: char| c.is_ascii_digit())?;
    let is_start = |c: char| c.is_alphabetic() || matches!(c, ';' | ',' | '#' | '~');
    let Some(start) = text[digit..].find(is_start) else {
        return Some(text);
    };
    let (number, extension) = text.split_at(digit + start);
    let extension = extension.strip_suffix('#').unwrap_or(extension);
    let (word, digits) = extension.split_at(extension.find(|c: char| c.is_ascii_digit())?);
    let word: String = word.chars().filter(|c| c.is_alphabetic()).collect();
    let is_extension = (word.is_empty() || is_in(EXTENSION_WORDS, &word))
        && digits.chars().all(|c| c.is_ascii_digit() || c == '-');
    is_extension.then_some(number)
}

fn is_in(words: &str, word: &str) -> bool {
    words.split(' ').any(|other| other == word)
}

/// Converts full-width forms, as Asian keyboards write them, to ASCII (Unicode block FF00–FFEF).
fn half_width(c: char) -> char {
    match c {
        '！'..='～' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        c => c,
    }
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '-' | '.' | '/' | '‐'..='―')
}
