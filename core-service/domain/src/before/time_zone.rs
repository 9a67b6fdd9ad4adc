//! Time zones: UTC offsets, abbreviations and names of the tz database.

use super::word_tables::has_word;
use jiff::tz::TimeZone;
use std::ops::RangeInclusive;

/// The time zone that a text names for its local time.
#[derive(Clone, Debug)]
pub(super) enum TimeZoneDesignator {
    /// Seconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

/// The UTC offsets in use, in seconds.
pub(crate) const UTC_OFFSETS: RangeInclusive<i64> = -12 * 3600..=14 * 3600;

/// The signed number at the start of a text, with its colons: a UTC offset, or the amount of a
/// duration.
pub(super) fn signed_number(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['+', '-'])?;
    text.strip_suffix(digits.trim_start_matches(|char: char| char.is_ascii_digit() || char == ':'))
}

/// Whether a signed number is written as a UTC offset: `+HH`, `+HHMM` or `+HH:MM`, or with seconds.
pub(super) fn is_written_as_offset(number: &str) -> bool {
    let digits = number.trim_start_matches(['+', '-']);
    if digits.contains(':') {
        digits.split(':').all(|part| part.len() == 2)
    } else {
        matches!(digits.len(), 2 | 4 | 6)
    }
}

/// Parses a time zone that the grammar has matched. `Z` is the only single letter accepted: `A` rarely
/// means the military zone an hour east of UTC.
pub(super) fn parse(text: &str) -> Option<TimeZoneDesignator> {
    let text = text
        .trim_start_matches([' ', '\t', '('])
        .trim_end_matches(')');
    let offset = text
        .strip_prefix("GMT")
        .filter(|rest| rest.starts_with(['+', '-']))
        .unwrap_or(text);
    if let Some(digits) = offset.strip_prefix('+') {
        return offset_seconds(digits).map(TimeZoneDesignator::Fixed);
    }
    if let Some(digits) = offset.strip_prefix('-') {
        return offset_seconds(digits).map(|seconds| TimeZoneDesignator::Fixed(-seconds));
    }
    if text.eq_ignore_ascii_case("z") {
        return Some(TimeZoneDesignator::Fixed(0));
    }
    if text.len() == 1 {
        return None;
    }
    offset_of_abbreviation(text)
        .map(TimeZoneDesignator::Fixed)
        .or_else(|| TimeZone::get(text).ok().map(TimeZoneDesignator::Named))
}

/// Parses `H`, `HH`, `HMM`, `HHMM`, `H:M`, `HH:MM`, `HHMMSS` or `HH:MM:SS`.
fn offset_seconds(text: &str) -> Option<i64> {
    // Few enough for the arithmetic below not to overflow.
    let number = |digits: &str| {
        let digits = (digits.len() <= 6).then_some(digits)?;
        digits.parse::<i64>().ok()
    };
    if text.contains(':') {
        let mut parts = text.split(':');
        let hours = number(parts.next()?)?;
        let minutes = number(parts.next()?)?;
        let seconds = parts.next().map_or(Some(0), number)?;
        return Some(hours * 3600 + minutes * 60 + seconds);
    }
    let value = number(text)?;
    match text.len() {
        1 | 2 => Some(value * 3600),
        3 | 4 => Some(value / 100 * 3600 + value % 100 * 60),
        6 => Some(value / 10_000 * 3600 + value / 100 % 100 * 60 + value % 100),
        _ => None,
    }
}

fn offset_of_abbreviation(text: &str) -> Option<i64> {
    let mut rows = ABBREVIATIONS.iter();
    let (seconds, _) = rows.find(|(_, names)| has_word(names, text))?;
    Some(*seconds)
}

/// The offsets of an abbreviation of several time zones that are in use, in seconds east of UTC: `IST`
/// is that of India, Ireland and Israel, `CST` that of Chicago, Havana and Shanghai.
pub(super) fn offsets_of_ambiguous(text: &str) -> Option<&'static [i64]> {
    let text = text.trim_matches(['(', ')', ' ', '\t']);
    let mut rows = AMBIGUOUS_ABBREVIATIONS.iter();
    let (_, offsets) = rows.find(|(name, _)| name.eq_ignore_ascii_case(text))?;
    Some(offsets)
}

const AMBIGUOUS_ABBREVIATIONS: &[(&str, &[i64])] = table! {
    "amt" => &[-14_400, 14_400];
    "cdt" => &[-18_000, -14_400];
    "cst" => &[-21_600, -18_000, 28_800];
    "ist" => &[3600, 7200, 19_800];
    "pst" => &[-28_800, 28_800];
};

/// Seconds east of UTC, and the abbreviations that zones have today, each of one offset.
const ABBREVIATIONS: &[(i64, &str)] = table! {
    -39_600 => "sst";
    -36_000 => "hst";
    -32_400 => "akst hdt";
    -28_800 => "akdt";
    -25_200 => "mst pdt";
    -21_600 => "mdt";
    -18_000 => "est";
    -14_400 => "ast edt";
    -12_600 => "nst";
    -10_800 => "adt";
    -9000 => "ndt";
    0 => "gmt uct utc wet";
    3600 => "bst cet met wat west";
    7200 => "cat cest eet mest sast";
    10_800 => "eat eest idt msk";
    14_400 => "gst";
    18_000 => "pkt";
    21_600 => "bdt";
    25_200 => "wib";
    28_800 => "awst hkt wita";
    32_400 => "jst kst wit";
    34_200 => "acst";
    36_000 => "aest chst";
    37_800 => "acdt";
    39_600 => "aedt";
    43_200 => "nzst";
    46_800 => "nzdt";
};

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(text: &str) -> Option<i64> {
        match parse(text)? {
            TimeZoneDesignator::Fixed(seconds) => Some(seconds),
            TimeZoneDesignator::Named(_) => None,
        }
    }

    #[test]
    fn offsets_are_parsed_in_all_notations() {
        let rows = [
            ("+1", 3600),
            ("+0100", 3600),
            ("-05:30", -19_800),
            ("+930", 34_200),
            ("GMT+2", 7200),
            ("+01:00:30", 3630),
            ("Z", 0),
            ("cest", 7200),
            ("(EST)", -18_000),
            ("KST", 32_400),
            ("GST", 14_400),
            ("BDT", 21_600),
            ("HDT", -32_400),
            ("NDT", -9000),
        ];
        for (text, seconds) in rows {
            assert_eq!(fixed(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn abbreviations_of_several_zones_and_of_abolished_ones_have_no_offset() {
        for text in ["IST", "cst", "CDT", "(PST)", "AMT"] {
            assert!(offsets_of_ambiguous(text).is_some(), "{text}");
            assert!(parse(text).is_none(), "{text}");
        }
        for text in ["LMT", "BMT", "MSD", "AHST", "EWT"] {
            assert!(offsets_of_ambiguous(text).is_none(), "{text}");
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn names_of_the_tz_database_are_time_zones_and_single_letters_are_not() {
        assert!(matches!(
            parse("Europe/Paris"),
            Some(TimeZoneDesignator::Named(_))
        ));
        for text in ["A", "t", "Europe/Lutetia", "foo"] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
