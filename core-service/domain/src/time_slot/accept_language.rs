//! Parses the `Accept-Language` header (RFC 9110 §12.5.4).

// Anything in the header beyond these limits is ignored.
const MAX_RANGES: usize = 32;
const MAX_BYTES: usize = 1024;

/// A language range with its quality in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LanguageRange<'h> {
    pub(super) range: &'h str,
    pub(super) quality: u16,
}

/// The header's ranges by descending quality; ranges of equal quality keep their order.
/// Malformed ranges are skipped.
pub(super) fn parse(header: &str) -> Vec<LanguageRange<'_>> {
    let header = &header[..header.floor_char_boundary(MAX_BYTES)];
    let mut ranges: Vec<_> = header
        .split(',')
        .take(MAX_RANGES)
        .filter_map(language_range)
        .collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.quality));
    ranges
}

fn language_range(text: &str) -> Option<LanguageRange<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|range| is_range(range))?;
    let quality = match parts.next() {
        None => 1000,
        Some(weight) => {
            let (q, value) = weight.split_once('=')?;
            quality(value).filter(|_| q.eq_ignore_ascii_case("q"))?
        }
    };
    parts
        .next()
        .is_none()
        .then_some(LanguageRange { range, quality })
}

/// RFC 4647 §2.1: subtags of one to eight letters or digits, or `*`.
fn is_range(text: &str) -> bool {
    text == "*"
        || text.split('-').all(|subtag| {
            (1..=8).contains(&subtag.len())
                && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// RFC 9110 §12.4.2: 0 to 1 with at most three decimals.
fn quality(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" => (thousandths == 0).then_some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_sorted_by_quality_and_malformed_ranges_are_skipped() {
        let ranges = |header| -> Vec<_> {
            parse(header)
                .iter()
                .map(|range| format!("{} {}", range.range, range.quality))
                .collect()
        };
        for (header, expected) in [
            (
                "fr-CH, fr;q=0.9, en;q=0.8, *;q=0.5",
                vec!["fr-CH 1000", "fr 900", "en 800", "* 500"],
            ),
            ("en;q=0.1 , de ; Q=1.000", vec!["de 1000", "en 100"]),
            ("nl;q=0", vec!["nl 0"]),
            ("", vec![]),
            (
                ",,, ;q=1, en;q=2, en;q=0.1234, en;q, en;x=1, en;q=1;q=1, e n, --, abcdefghi, é",
                vec![],
            ),
            ("en;q=1.5, en;q=-1, en;q=.5, en;q=+0.5", vec![]),
        ] {
            assert_eq!(ranges(header), expected, "{header:?}");
        }
        assert_eq!(parse(&"en,".repeat(10_000)).len(), MAX_RANGES);
        assert_eq!(parse(&"é".repeat(1023)), []);
    }
}
