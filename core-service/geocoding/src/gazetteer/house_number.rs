//! Parses house numbers of queries and of imported data.

use crate::tokenizer::{Country, Word, fold};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HouseNumber {
    pub(super) number: u32,
    /// `bis`, `a`; empty for most.
    pub(super) suffix: String,
}

/// A house number with its position in a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HouseNumberInQuery {
    pub(super) house: HouseNumber,
    pub(super) words: std::ops::Range<usize>,
}

/// In characters; a longer suffix is a remark and ignored.
const MAX_SUFFIX: usize = 9;

impl HouseNumber {
    /// Parses imported data: `12`, `12bis`, `12 B`, `12-14`, with an optional separate suffix.
    pub(super) fn from_data(number: &str, suffix: &str) -> Option<Self> {
        let text = number.trim();
        let (digits, rest) = text.split_at(leading_digits(text));
        let number: u32 = digits.parse().ok()?;
        // `12-14` and `12/3` count as number 12.
        let suffix = match (suffix.trim(), rest.trim_start()) {
            ("", rest) if rest.starts_with(|c: char| c.is_alphabetic()) => fold(rest),
            (suffix, _) => fold(suffix),
        };
        // French data has 99999 for houses without a number.
        (1..99_999).contains(&number).then_some(Self {
            number,
            suffix: if suffix.chars().count() <= MAX_SUFFIX {
                suffix
            } else {
                String::new()
            },
        })
    }

    /// The house numbers directly before the first word of a street, nearest first. Excludes the
    /// `12` of `appartement 12, 24 rue …` and of `appartement 12, rue …`.
    pub(super) fn before(
        words: &[Word],
        street_start: usize,
        country: &Country,
    ) -> Vec<HouseNumberInQuery> {
        let mut houses: Vec<HouseNumberInQuery> = Vec::new();
        let mut end = street_start;
        while let Some(house) = Self::ending_before(words, end, country) {
            end = house.words.start;
            houses.push(house);
        }
        let is_indoors = end
            .checked_sub(1)
            .is_some_and(|word| country.is_indoor_word(&words[word].text));
        let is_in_other_part = |house: &HouseNumberInQuery| {
            let street_part = words.get(street_start).map(|word| word.part);
            street_part != Some(words[house.words.start].part)
        };
        if is_indoors && (houses.len() > 1 || houses.last().is_some_and(is_in_other_part)) {
            houses.pop();
        }
        houses
    }

    /// The house number that ends directly before a word.
    fn ending_before(words: &[Word], end: usize, country: &Country) -> Option<HouseNumberInQuery> {
        let last = end.checked_sub(1)?;
        let last_word = &words[last].text;
        if country.is_number_suffix(last_word)
            && let Some(number) = last.checked_sub(1)
            && let Some(house) = Self::from_word(&words[number].text, country)
            && house.suffix.is_empty()
        {
            let suffix = last_word.clone();
            return Some(HouseNumberInQuery {
                house: Self { suffix, ..house },
                words: number..end,
            });
        }
        Some(HouseNumberInQuery {
            house: Self::from_word(last_word, country)?,
            words: last..end,
        })
    }

    /// The house number directly after the last word of a street. Excludes the `3e` of `3e étage`.
    pub(super) fn after(
        words: &[Word],
        street_end: usize,
        country: &Country,
    ) -> Option<HouseNumberInQuery> {
        let prefixes = words[street_end..]
            .iter()
            .take_while(|word| country.is_number_prefix(&word.text))
            .count();
        let start = street_end + prefixes;
        let mut house = Self::from_word(&words.get(start)?.text, country)?;
        let next = words
            .get(start + 1)
            .filter(|next| next.part == words[start].part)
            .map(|word| word.text.as_str());
        if house.suffix == "e" || next.is_some_and(|next| country.is_floor_word(next)) {
            return None;
        }
        let mut end = start + 1;
        if let Some(suffix) = next
            && house.suffix.is_empty()
            && country.is_number_suffix(suffix)
        {
            suffix.clone_into(&mut house.suffix);
            end += 1;
        }
        Some(HouseNumberInQuery {
            house,
            words: start..end,
        })
    }

    /// A house number in one word: `12`, `12a`, `12bis`.
    fn from_word(word: &str, country: &Country) -> Option<Self> {
        let (number, suffix) = word.split_at(leading_digits(word));
        if !country.may_be_house_number(number.len())
            || !(suffix.is_empty() || country.is_number_suffix(suffix))
        {
            return None;
        }
        Some(Self {
            number: number.parse().ok()?,
            suffix: suffix.to_owned(),
        })
    }
}

fn leading_digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len())
}

impl std::fmt::Display for HouseNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.suffix.as_str() {
            "" => write!(f, "{}", self.number),
            letter if letter.len() == 1 => write!(f, "{}{}", self.number, letter.to_uppercase()),
            suffix => write!(f, "{} {suffix}", self.number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imported_house_numbers_have_many_forms() {
        for (number, suffix, expected) in [
            ("12", "", Some("12")),
            ("12", "bis", Some("12 bis")),
            ("12", "B", Some("12B")),
            ("12bis", "", Some("12 bis")),
            ("12 B", "", Some("12B")),
            ("12-14", "", Some("12")),
            ("12/3", "", Some("12")),
            ("12 1/2", "", Some("12")),
            ("0", "", None),
            ("99999", "", None),
            ("", "bis", None),
            ("B12", "", None),
            ("99999999999", "", None),
        ] {
            let house = HouseNumber::from_data(number, suffix).map(|house| house.to_string());
            assert_eq!(house.as_deref(), expected, "{number} {suffix}");
        }
    }
}
