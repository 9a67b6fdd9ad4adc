//! Pages of lists ordered by creation: sizes, and the opaque tokens that say where a page begins.
//! A token names a place, not a right: whatever it says, a page shows the caller's own alone.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::violation::Violations;
use jiff::Timestamp;
use uuid::Uuid;

use storage::pages::{Place, Start};

const DEFAULT_SIZE: u32 = 30;
const LARGEST_SIZE: u32 = 100;

/// Version, direction, microseconds since 1970, id.
const TOKEN_BYTES: usize = 1 + 1 + 8 + 16;
const VERSION: u8 = 1;
const OLDER: u8 = 0;
const NEWER: u8 = 1;

/// How many a page shows.
pub(super) fn read_size(size: Option<u32>, violations: &mut Violations) -> u32 {
    let size = size.unwrap_or(DEFAULT_SIZE);
    if !(1..=LARGEST_SIZE).contains(&size) {
        violations.add(
            "page_size",
            "OUT_OF_RANGE",
            format!("must be from 1 to {LARGEST_SIZE}, not {size}"),
        );
    }
    size
}

/// Where a page begins.
pub(super) fn read_token(token: &str, violations: &mut Violations) -> Start {
    if token.is_empty() {
        return Start::Newest;
    }
    decode(token).unwrap_or_else(|| {
        violations.add(
            "page_token",
            "INVALID_CURSOR",
            "is not a place in this list; follow the links that its pages give, as they are",
        );
        Start::Newest
    })
}

/// The tokens of the pages after and before a page, empty where there are none.
///
/// The page is told by its first and last place; none if it is empty.
pub(super) fn tokens(
    start: Start,
    [first, last]: [Option<Place>; 2],
    more: bool,
) -> (String, String) {
    let older = || last.map(Start::OlderThan);
    let newer = || first.map(Start::NewerThan);
    // In the direction it came from is at least what it began beyond.
    let (next, previous) = match start {
        Start::Newest => (older().filter(|_| more), None),
        Start::OlderThan(_) => (older().filter(|_| more), newer()),
        Start::NewerThan(_) => (older(), newer().filter(|_| more)),
    };
    let text = |start: Option<Start>| start.map(encode).unwrap_or_default();
    (text(next), text(previous))
}

/// The token of a page that begins there; empty at the newest.
pub(super) fn encode(start: Start) -> String {
    let (direction, place) = match start {
        Start::Newest => return String::new(),
        Start::OlderThan(place) => (OLDER, place),
        Start::NewerThan(place) => (NEWER, place),
    };
    let mut bytes = Vec::with_capacity(TOKEN_BYTES);
    bytes.extend([VERSION, direction]);
    bytes.extend(place.created_at.as_microsecond().to_be_bytes());
    bytes.extend(place.id.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Where the page with a token begins.
pub(super) fn decode(token: &str) -> Option<Start> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
    let ([version, direction], rest) = bytes.split_first_chunk()?;
    let (microseconds, id) = rest.split_first_chunk()?;
    let place = Place {
        created_at: Timestamp::from_microsecond(i64::from_be_bytes(*microseconds)).ok()?,
        id: Uuid::from_slice(id).ok()?,
    };
    match (*version, *direction) {
        (VERSION, OLDER) => Some(Start::OlderThan(place)),
        (VERSION, NEWER) => Some(Start::NewerThan(place)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn somewhere() -> Place {
        Place {
            created_at: "2020-04-02T09:00:00.000001Z".parse().unwrap(),
            id: Uuid::now_v7(),
        }
    }

    #[test]
    fn a_token_is_the_place_it_was_made_of() {
        for start in [
            Start::OlderThan(somewhere()),
            Start::NewerThan(somewhere()),
            Start::OlderThan(Place {
                created_at: Timestamp::from_microsecond(-1).unwrap(),
                ..somewhere()
            }),
        ] {
            let token = encode(start);
            assert_eq!(decode(&token), Some(start), "{token}");

            let mut violations = Violations::new();
            assert_eq!(read_token(&token, &mut violations), start);
            assert!(violations.is_empty());
        }
    }

    #[test]
    fn what_is_no_token_is_a_violation() {
        let token = encode(Start::OlderThan(somewhere()));
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&token).unwrap();
        let altered = |index: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[index] = byte;
            BASE64_URL_SAFE_NO_PAD.encode(bytes)
        };
        for wrong in [
            token[1..].to_owned(),
            token[..token.len() - 2].to_owned(),
            format!("{token}AA"),
            format!("{token}="),
            format!(" {token}"),
            altered(0, 2),
            altered(1, 2),
            altered(2, 0x7f),
            "%00".to_owned(),
            "é".to_owned(),
        ] {
            let mut violations = Violations::new();
            assert_eq!(read_token(&wrong, &mut violations), Start::Newest);
            assert!(violations.is_at_or_below("page_token"), "{wrong}");
        }
    }

    #[test]
    fn a_size_is_from_1_to_100() {
        for (size, read, is_refused) in [
            (None, 30, false),
            (Some(1), 1, false),
            (Some(100), 100, false),
            (Some(0), 0, true),
            (Some(101), 101, true),
            (Some(u32::MAX), u32::MAX, true),
        ] {
            let mut violations = Violations::new();
            assert_eq!(read_size(size, &mut violations), read);
            assert_eq!(!violations.is_empty(), is_refused, "{size:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_token_or_none(text in "[A-Za-z0-9_-]{0,40}") {
            if let Some(start) = decode(&text) {
                prop_assert_eq!(encode(start), text);
            }
        }
    }
}
