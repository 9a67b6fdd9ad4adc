//! What a text may mean that people search deliveries for.

use std::ops::RangeInclusive;

use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};
use uuid::Uuid;

use crate::{address::Address, id::DeliveryId, telephone, visible::visible};

/// A prefix of an id has what was created within 66 seconds: the first 12 digits are the time in milliseconds.
const MIN_ID_DIGITS: usize = 8;
const ID_DIGITS: usize = 32;
/// Letters and digits. Fewer are in most addresses.
const MIN_CONTENT: usize = 3;

/// A search. Each of its parts finds deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliverySearch {
    pub ids: Option<RangeInclusive<DeliveryId>>,
    pub external_reference: Option<String>,
    pub content: Option<Content>,
}

/// What addresses are searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// E.164.
    telephone: Option<String>,
    /// Of a contact's name or an address, all in one address.
    words: Vec<String>,
}

impl DeliverySearch {
    /// Reads a text, with telephone numbers in the national form of a country. An IRI is nothing but an id, and a whole
    /// id no content.
    pub fn parse(text: &str, country: &str) -> Self {
        let text = text.trim();
        if let Some((_, id)) = text.rsplit_once("deliveries/") {
            return Self {
                ids: ids_beginning_with(id),
                external_reference: None,
                content: None,
            };
        }
        let ids = ids_beginning_with(text);
        let is_id = ids.as_ref().is_some_and(|ids| ids.start() == ids.end());
        Self {
            ids,
            external_reference: Some(text.to_owned()),
            content: Content::parse(text, country).filter(|_| !is_id),
        }
    }
}

/// The ids whose hexadecimal digits begin with a text, which may have their hyphens.
fn ids_beginning_with(text: &str) -> Option<RangeInclusive<DeliveryId>> {
    let digits = text.replace('-', "");
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hexadecimal || !(MIN_ID_DIGITS..=ID_DIGITS).contains(&digits.len()) {
        return None;
    }
    let filled = |digit: &str| {
        let rest = digit.repeat(ID_DIGITS.checked_sub(digits.len())?);
        let number = u128::from_str_radix(&format!("{digits}{rest}"), 16);
        Some(DeliveryId(Uuid::from_u128(number.ok()?)))
    };
    Some(filled("0")?..=filled("f")?)
}

impl Content {
    /// None if the text is no telephone number and too short.
    fn parse(text: &str, country: &str) -> Option<Self> {
        let telephone = telephone::parse(text, country).ok().flatten();
        let folded = fold(text);
        let words = folded.split(|c: char| !c.is_alphanumeric());
        let mut words: Vec<_> = words
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        let length: usize = words.iter().map(|word| word.chars().count()).sum();
        if length < MIN_CONTENT {
            words.clear();
        }
        let has_content = telephone.is_some() || !words.is_empty();
        has_content.then_some(Self { telephone, words })
    }

    /// Whether an address has the telephone number, or all words in its texts.
    pub fn is_in(&self, address: &Address) -> bool {
        if self.telephone.is_some() && self.telephone == address.telephone {
            return true;
        }
        if self.words.is_empty() {
            return false;
        }
        let texts = [
            &address.contact_name,
            &address.place_name,
            &address.postal_code,
            &address.locality,
        ];
        let texts = texts.into_iter().flatten().map(String::as_str);
        let texts: Vec<_> = texts.chain([address.street_address.as_str()]).collect();
        let text = fold(&texts.join("\n"));
        self.words.iter().all(|word| text.contains(word))
    }
}

/// The text in lower case and without accents.
pub(crate) fn fold(text: &str) -> String {
    let text = visible(text);
    let chars = text.nfkd().filter(|c| !is_combining_mark(*c));
    let folded: String = chars.flat_map(char::to_lowercase).collect();
    folded.replace('ß', "ss")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{address::LatLng, id::AddressId};

    const ID: &str = "0197a2b4-9f4a-7000-8000-00000000000a";

    fn parse(text: &str) -> DeliverySearch {
        DeliverySearch::parse(text, "FR")
    }

    fn ids(first: &str, last: &str) -> RangeInclusive<DeliveryId> {
        let id = |text| DeliveryId(Uuid::try_parse(text).unwrap());
        id(first)..=id(last)
    }

    #[test]
    fn an_id_an_iri_and_a_prefix_are_ranges_of_ids() {
        for text in [ID, &ID.to_uppercase(), &ID.replace('-', "")] {
            let search = parse(text);
            assert_eq!(search.ids, Some(ids(ID, ID)), "{text}");
            assert_eq!(search.external_reference.as_deref(), Some(text));
            assert_eq!(search.content, None, "{text}");
        }
        for iri in [
            format!("deliveries/{ID}"),
            format!(" /api/deliveries/{ID}"),
            format!("https://shop.example/api/deliveries/{ID}"),
        ] {
            let expected = DeliverySearch {
                ids: Some(ids(ID, ID)),
                external_reference: None,
                content: None,
            };
            assert_eq!(parse(&iri), expected, "{iri}");
        }
        for prefix in ["0197a2b4", "0197A2B4-"] {
            let expected = ids(
                "0197a2b4-0000-0000-0000-000000000000",
                "0197a2b4-ffff-ffff-ffff-ffffffffffff",
            );
            assert_eq!(parse(prefix).ids, Some(expected), "{prefix}");
        }
        for text in [
            "0197a2b",
            &format!("{ID}0"),
            "+33612345678",
            "rivoli",
            "é197a2b4",
            "/api/deliveries/1",
        ] {
            assert_eq!(parse(text).ids, None, "{text}");
        }
    }

    #[test]
    fn a_telephone_number_is_found_as_it_is_written_and_words_without_accents() {
        let address = Address {
            id: AddressId::new(),
            street_address: "12 Gößstraße, Bâtiment B".to_owned(),
            lat_lng: LatLng::new(48.0, 2.0).unwrap(),
            place_name: None,
            contact_name: Some("Zoé Martin".to_owned()),
            telephone: Some("+33612345678".to_owned()),
            description: Some("behind the garden".to_owned()),
            postal_code: Some("75004".to_owned()),
            locality: Some("Paris".to_owned()),
            country: Some("FR".to_owned()),
        };
        for (text, expected) in [
            ("06 12 34 56 78", true),
            ("+33 6 12.34.56.78", true),
            ("06 12 34 56 79", false),
            ("zoe", true),
            ("MARTIN, Zoë", true),
            ("martin paris 75004", true),
            ("gossstrasse 12", true),
            ("batiment", true),
            ("martin berlin", false),
            ("garden", false),
        ] {
            let content = parse(text).content.unwrap();
            assert_eq!(content.is_in(&address), expected, "{text}");
        }
        for text in ["zo", "7", "- ,", "é"] {
            assert_eq!(parse(text).content, None, "{text}");
        }
    }
}
