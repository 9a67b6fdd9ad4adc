//! House numbers, as people write them around a street.

use crate::geocoding::words::Language;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct House {
    pub(super) number: u32,
    /// `bis`, `a`; empty for most.
    pub(super) suffix: String,
}

impl House {
    /// The house numbers right before the street, the nearest first. The `12` of
    /// `appartement 12, 24 rue …` is none.
    pub(super) fn before(words: &[String], language: &Language) -> Vec<Self> {
        let mut houses = Vec::new();
        let mut rest = words;
        while let Some((last, before)) = rest.split_last() {
            let separate_suffix = before
                .last()
                .filter(|_| language.is_number_suffix(last))
                .and_then(|number| number.parse().ok());
            if let Some(number) = separate_suffix {
                houses.push(Self {
                    number,
                    suffix: last.clone(),
                });
                rest = &before[..before.len() - 1];
            } else if let Some(house) = Self::parse(last, language) {
                houses.push(house);
                rest = before;
            } else {
                if language.is_indoors(last) && houses.len() > 1 {
                    houses.pop();
                }
                break;
            }
        }
        houses
    }

    /// The house number right after the street, and its length in words. The `3e` of
    /// `3e étage` is none.
    pub(super) fn after(words: &[String], language: &Language) -> Option<(Self, usize)> {
        let mut house = Self::parse(words.first()?, language)?;
        let next = words.get(1).map(String::as_str);
        if house.suffix == "e" || next.is_some_and(|next| language.is_indoors(next)) {
            return None;
        }
        match next {
            Some(suffix) if house.suffix.is_empty() && language.is_number_suffix(suffix) => {
                suffix.clone_into(&mut house.suffix);
                Some((house, 2))
            }
            _ => Some((house, 1)),
        }
    }

    /// A house number in one word: `12`, `12a`, `12bis`.
    fn parse(word: &str, language: &Language) -> Option<Self> {
        let digits = word
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(word.len());
        let (number, suffix) = word.split_at(digits);
        if !(1..=4).contains(&number.len())
            || !(suffix.is_empty() || language.is_number_suffix(suffix))
        {
            return None;
        }
        Some(Self {
            number: number.parse().ok()?,
            suffix: suffix.to_owned(),
        })
    }
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
