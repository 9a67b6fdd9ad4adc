//! Chooses the language of texts for people, by the `Accept-Language` value that a client sends.

/// The languages of the platform's texts for people (BCP 47).
pub const LANGUAGES: [&str; 6] = ["en", "fr", "de", "es", "it", "nl"];

/// The rest of a longer value is ignored.
const MAX_BYTES: usize = 1024;

/// Chooses a known language for an `Accept-Language` value (RFC 9110 §12.5.4) by lookup (RFC 4647
/// §3.4), otherwise the fallback's (a language tag, or a locale with `_`), if that is known.
pub fn negotiate<'k>(accept_language: &str, fallback: &str, known: &[&'k str]) -> Option<&'k str> {
    let header = &accept_language[..accept_language.floor_char_boundary(MAX_BYTES)];
    let mut ranges: Vec<_> = header.split(',').filter_map(range_with_quality).collect();
    ranges.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranges
        .into_iter()
        .find_map(|(range, _)| look_up(range, known))
        .or_else(|| look_up(&fallback.replace('_', "-"), known))
}

/// The known language of the longest known prefix of a tag.
fn look_up<'k>(tag: &str, known: &[&'k str]) -> Option<&'k str> {
    let mut tag = tag;
    loop {
        let found = known.iter().find(|known| known.eq_ignore_ascii_case(tag));
        if found.is_some() {
            return found.copied();
        }
        tag = tag.rsplit_once('-')?.0;
    }
}

/// A range of an `Accept-Language` value, unless it is malformed or excluded.
fn range_with_quality(text: &str) -> Option<(&str, f32)> {
    let (range, quality) = match text.split_once(';') {
        None => (text, 1.0),
        Some((range, weight)) => {
            let value = weight.trim().strip_prefix(['q', 'Q'])?.strip_prefix('=')?;
            (range, value.parse().ok()?)
        }
    };
    (quality > 0.0).then_some((range.trim(), quality))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_language_is_looked_up_and_falls_back() {
        for (header, fallback, expected) in [
            ("", "fr", Some("fr")),
            ("", "fr_FR.UTF-8", Some("fr")),
            ("", "nl-BE", Some("nl")),
            ("", "nl_BE", Some("nl")),
            ("", "xx", None),
            ("de", "fr", Some("de")),
            ("DE-ch-1996", "fr", Some("de")),
            ("pl, it;q=0.3, es;q=0.5", "fr", Some("es")),
            ("pl", "fr", Some("fr")),
            ("pl, *", "fr", Some("fr")),
            ("*, de;q=0.5", "fr", Some("de")),
            ("de;q=0", "fr", Some("fr")),
            ("en;q=0.2, fr-CA", "en", Some("fr")),
            ("en;q=0.1 , de ; Q=1.000", "fr", Some("de")),
            ("es;q=0.5, it;q=0.5", "fr", Some("es")),
            (
                "en;q=NaN, de;q=, es;x=1, it;q=1;q=1, ;q=1, é, --",
                "fr",
                Some("fr"),
            ),
            ("frx", "en", Some("en")),
            (&format!("{}de", "x,".repeat(511)), "en", Some("de")),
            (&format!("{}de", "x,".repeat(512)), "en", Some("en")),
        ] {
            assert_eq!(
                negotiate(header, fallback, &LANGUAGES),
                expected,
                "{header:?}, {fallback:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn negotiation_never_panics(header in "\\PC{0,80}|[a-z*;q=0-9., -]{0,80}", fallback in "\\PC{0,20}") {
            let _ = negotiate(&header, &fallback, &LANGUAGES);
        }
    }
}
