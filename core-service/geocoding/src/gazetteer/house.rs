//! House numbers, as people and data write them.

use crate::words::{Country, Word, folded};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct House {
    pub(super) number: u32,
    /// `bis`, `a`; empty for most.
    pub(super) suffix: String,
}

/// A house number in a text, and which words it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) house: House,
    pub(super) words: std::ops::Range<usize>,
}

/// Of a suffix: more is a remark.
const LONGEST_SUFFIX: usize = 9;

impl House {
    /// As a list of addresses has it: `12`, `12bis`, `12 B`, `12-14`, with a suffix of its own
    /// or not.
    pub(super) fn listed(number: &str, suffix: &str) -> Option<Self> {
        let number = number.trim();
        let digits = digits(number);
        let (number, rest) = number.split_at(digits);
        let number: u32 = number.parse().ok()?;
        // `12-14` and `12/3` are at number 12.
        let suffix = match (suffix.trim(), rest.trim_start()) {
            ("", rest) if rest.starts_with(|c: char| c.is_alphabetic()) => folded(rest),
            (suffix, _) => folded(suffix),
        };
        // French data has 99999 for houses without a number.
        (1..99_999).contains(&number).then_some(Self {
            number,
            suffix: if suffix.chars().count() <= LONGEST_SUFFIX {
                suffix
            } else {
                String::new()
            },
        })
    }

    /// The house numbers right before a street that begins at a word, the nearest first. The
    /// `12` of `appartement 12, 24 rue …` is none, nor that of `appartement 12, rue …`.
    pub(super) fn before(words: &[Word], street: usize, country: &Country) -> Vec<Written> {
        let mut houses: Vec<Written> = Vec::new();
        let mut end = street;
        while let Some(written) = Self::ending(words, end, country) {
            end = written.words.start;
            houses.push(written);
        }
        let is_indoors = end
            .checked_sub(1)
            .is_some_and(|word| country.is_indoors(&words[word].text));
        let is_apart = |written: &Written| {
            let street = words.get(street).map(|word| word.part);
            street != Some(words[written.words.start].part)
        };
        if is_indoors && (houses.len() > 1 || houses.last().is_some_and(is_apart)) {
            houses.pop();
        }
        houses
    }

    /// The house number that ends before a word.
    fn ending(words: &[Word], end: usize, country: &Country) -> Option<Written> {
        let last = end.checked_sub(1)?;
        let suffix = &words[last].text;
        let separate = last
            .checked_sub(1)
            .filter(|_| country.is_number_suffix(suffix))
            .and_then(|number| Self::written(&words[number].text, country))
            .filter(|house| house.suffix.is_empty());
        if let Some(house) = separate {
            return Some(Written {
                house: Self {
                    suffix: suffix.clone(),
                    ..house
                },
                words: last - 1..end,
            });
        }
        Some(Written {
            house: Self::written(suffix, country)?,
            words: last..end,
        })
    }

    /// The house number right after a street that ends before a word. The `3e` of `3e étage` is
    /// none.
    pub(super) fn after(words: &[Word], street: usize, country: &Country) -> Option<Written> {
        let marks = words[street..]
            .iter()
            .take_while(|word| country.is_number_mark(&word.text))
            .count();
        let start = street + marks;
        let mut house = Self::written(&words.get(start)?.text, country)?;
        let next = words
            .get(start + 1)
            .filter(|next| next.part == words[start].part)
            .map(|word| word.text.as_str());
        if house.suffix == "e" || next.is_some_and(|next| country.is_floor(next)) {
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
        Some(Written {
            house,
            words: start..end,
        })
    }

    /// A house number in one word: `12`, `12a`, `12bis`.
    fn written(word: &str, country: &Country) -> Option<Self> {
        let (number, suffix) = word.split_at(digits(word));
        if !country.is_number(number.len())
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

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len())
}

impl std::fmt::Display for House {
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
    fn lists_write_numbers_in_many_ways() {
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
            let house = House::listed(number, suffix).map(|house| house.to_string());
            assert_eq!(house.as_deref(), expected, "{number} {suffix}");
        }
    }
}
