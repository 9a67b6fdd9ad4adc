//! Pagination of lists ordered by creation: page sizes, and opaque page tokens. A token grants no
//! access: every page is restricted to the caller's own resources.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::violation::Violations;
use jiff::Timestamp;
use proto::limits::MAX_PAGE_SIZE;
use uuid::Uuid;

use storage::pages::{Cursor, Start};

const DEFAULT_SIZE: u32 = 30;

/// The texts of a page, in bytes: a hundred usual deliveries have a tenth of it. A longer page would take
/// as much memory in core and in its gateway, several times each, for as long as its client reads.
const MAX_TEXTS: usize = 1 << 20;

/// Version, direction, microseconds since 1970, id.
const TOKEN_BYTES: usize = 1 + 1 + 8 + 16;
const VERSION: u8 = 1;
/// Of a token of another list.
pub(crate) const NOT_OF_LIST: &str = "is not a token of this list";

const OLDER: u8 = 0;
const NEWER: u8 = 1;

pub(crate) fn read_size(size: Option<u32>, violations: &mut Violations) -> u32 {
    let size = size.unwrap_or(DEFAULT_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&size) {
        violations.add(
            "page_size",
            "OUT_OF_RANGE",
            format!("must be from 1 to {MAX_PAGE_SIZE}, not {size}"),
        );
    }
    size
}

pub(crate) fn read_token(token: &str, violations: &mut Violations) -> Start {
    if token.is_empty() {
        return Start::Newest;
    }
    decode(token).unwrap_or_else(|| {
        violations.add(
            "page_token",
            "INVALID_CURSOR",
            "is not a cursor of this list; use the links in hydra:view unchanged",
        );
        Start::Newest
    })
}

/// The position after which a page of a list that is read in one direction begins; `None` for the first page.
pub(crate) fn read_next(token: &str, violations: &mut Violations) -> Option<Cursor> {
    match read_token(token, violations) {
        Start::Newest => None,
        Start::NewerThan(cursor) => Some(cursor),
        Start::OlderThan(_) => {
            violations.add("page_token", "INVALID_CURSOR", NOT_OF_LIST);
            None
        }
    }
}

/// Shortens a page to those rows, in the direction of reading, whose texts are at most [`MAX_TEXTS`]
/// together, but at least one; whether it left out any.
pub(crate) fn shorten<T>(
    page: &mut Vec<T>,
    start: Start,
    text_bytes: impl Fn(&T) -> usize,
) -> bool {
    let mut total = 0;
    let mut fits = |row: &T| {
        total += text_bytes(row);
        total <= MAX_TEXTS
    };
    let count = page.len();
    if matches!(start, Start::NewerThan(_)) {
        let fitting = page.iter().rev().take_while(|row| fits(row)).count().max(1);
        page.drain(..count.saturating_sub(fitting));
    } else {
        let fitting = page.iter().take_while(|row| fits(row)).count().max(1);
        page.truncate(fitting);
    }
    page.len() < count
}

/// The tokens of the next and the previous page, empty where there is none. `first` and `last` are
/// the bounds of the current page, none if it is empty.
pub(crate) fn tokens(
    start: Start,
    [first, last]: [Option<Cursor>; 2],
    has_more: bool,
) -> (String, String) {
    let older = || last.map(Start::OlderThan);
    let newer = || first.map(Start::NewerThan);
    // The page that the client comes from exists: `has_more` is about the other direction.
    let (next, previous) = match start {
        Start::Newest => (older().filter(|_| has_more), None),
        Start::OlderThan(_) => (older().filter(|_| has_more), newer()),
        Start::NewerThan(_) => (older(), newer().filter(|_| has_more)),
    };
    let text = |start: Option<Start>| start.map(encode).unwrap_or_default();
    (text(next), text(previous))
}

/// The token of a start; empty for the newest page.
pub(crate) fn encode(start: Start) -> String {
    let (direction, cursor) = match start {
        Start::Newest => return String::new(),
        Start::OlderThan(cursor) => (OLDER, cursor),
        Start::NewerThan(cursor) => (NEWER, cursor),
    };
    let mut bytes = Vec::with_capacity(TOKEN_BYTES);
    bytes.extend([VERSION, direction]);
    bytes.extend(cursor.created_at.as_microsecond().to_be_bytes());
    bytes.extend(cursor.id.as_bytes());
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn decode(token: &str) -> Option<Start> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
    let ([version, direction], rest) = bytes.split_first_chunk()?;
    let (microseconds, id) = rest.split_first_chunk()?;
    let cursor = Cursor {
        created_at: Timestamp::from_microsecond(i64::from_be_bytes(*microseconds)).ok()?,
        id: Uuid::from_slice(id).ok()?,
    };
    match (*version, *direction) {
        (VERSION, OLDER) => Some(Start::OlderThan(cursor)),
        (VERSION, NEWER) => Some(Start::NewerThan(cursor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_start() -> impl Strategy<Value = Start> {
        (any::<bool>(), -(1_i64 << 57)..1 << 57, any::<u128>()).prop_map(
            |(is_older, microseconds, id)| {
                let cursor = Cursor {
                    created_at: Timestamp::from_microsecond(microseconds).unwrap(),
                    id: Uuid::from_u128(id),
                };
                if is_older {
                    Start::OlderThan(cursor)
                } else {
                    Start::NewerThan(cursor)
                }
            },
        )
    }

    #[test]
    fn an_invalid_token_is_a_violation() {
        let token = encode(Start::OlderThan(Cursor {
            created_at: "2020-04-02T09:00:00.000001Z".parse().unwrap(),
            id: Uuid::now_v7(),
        }));
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
            assert!(violations.has_violation_in("page_token"), "{wrong}");
        }
    }

    #[test]
    fn a_page_has_the_first_rows_of_at_most_a_mebibyte_of_texts_and_at_least_one() {
        let cursor = Cursor {
            created_at: Timestamp::UNIX_EPOCH,
            id: Uuid::nil(),
        };
        let (half, all) = (MAX_TEXTS / 2, MAX_TEXTS);
        for (texts, older, newer) in [
            (vec![], vec![], vec![]),
            (vec![half, half], vec![half, half], vec![half, half]),
            (vec![1, half, half], vec![1, half], vec![half, half]),
            (vec![all + 1, 1], vec![all + 1], vec![1]),
            (vec![1, all + 1], vec![1], vec![all + 1]),
        ] {
            for (start, expected) in [
                (Start::Newest, &older),
                (Start::OlderThan(cursor), &older),
                (Start::NewerThan(cursor), &newer),
            ] {
                let mut page = texts.clone();
                let is_shorter = shorten(&mut page, start, |bytes| *bytes);
                assert_eq!((&page, is_shorter), (expected, page.len() < texts.len()));
            }
        }
    }

    #[test]
    fn a_size_is_from_1_to_100() {
        for (size, read, is_rejected) in [
            (None, 30, false),
            (Some(1), 1, false),
            (Some(100), 100, false),
            (Some(0), 0, true),
            (Some(101), 101, true),
            (Some(u32::MAX), u32::MAX, true),
        ] {
            let mut violations = Violations::new();
            assert_eq!(read_size(size, &mut violations), read);
            assert_eq!(!violations.is_empty(), is_rejected, "{size:?}");
        }
    }

    proptest! {
        #[test]
        fn every_start_is_read_from_its_token(start in any_start()) {
            let mut violations = Violations::new();
            prop_assert_eq!(read_token(&encode(start), &mut violations), start);
            prop_assert!(violations.is_empty());
        }

        /// No two texts decode to the same start.
        #[test]
        fn an_altered_token_is_invalid_or_the_only_token_of_its_start(
            start in any_start(), index in 0..TOKEN_BYTES, other in "[A-Za-z0-9_-]",
        ) {
            // A text has more characters than its bytes: the index is never past the end.
            let mut text = encode(start);
            text.replace_range(index..=index, &other);

            // The first characters contain the version, the direction and the time's highest byte.
            let decoded = decode(&text);
            prop_assert!(decoded.is_some() || index < 4, "{text}");
            if let Some(decoded) = decoded {
                prop_assert_eq!(encode(decoded), text);
            }
        }

        #[test]
        fn no_text_makes_the_decoder_panic(text in "[A-Za-z0-9_-]{0,40}") {
            let _ = decode(&text);
        }
    }
}
