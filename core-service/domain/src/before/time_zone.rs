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
pub(super) const UTC_OFFSETS: RangeInclusive<i64> = -12 * 3600..=14 * 3600;

/// The signed number at the start of a text, with its colons: a UTC offset, or the amount of a
/// duration.
pub(super) fn signed_number(text: &str) -> Option<&str> {
    let digits = text.strip_prefix(['+', '-'])?;
    text.strip_suffix(digits.trim_start_matches(is_digit_or_colon))
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

fn is_digit_or_colon(char: char) -> bool {
    char.is_ascii_digit() || char == ':'
}

fn offset_of_abbreviation(text: &str) -> Option<i64> {
    let mut rows = ABBREVIATIONS.iter();
    let (seconds, _) = rows.find(|(_, names)| has_word(names, text))?;
    Some(*seconds)
}

/// Seconds east of UTC, and the abbreviations, current and historical. An abbreviation with several
/// meanings, in different countries or at different times, has the one that PHP gives it: KST is
/// +08:30, its former offset.
const ABBREVIATIONS: &[(i64, &str)] = table! {
    -39_600 => "sst";
    -36_000 => "ahst bdt hst";
    -34_200 => "hdt hpt hwt";
    -32_400 => "ahdt akst yst";
    -28_800 => "akdt pst ydt ypt ywt";
    -26_248 => "emt";
    -25_200 => "mst pdt ppt pwt yddt";
    -21_600 => "cst mdt mpt mwt pddt";
    -20_173 => "sjmt";
    -19_776 => "hmt";
    -18_840 => "qmt";
    -18_000 => "cdt cpt cwt est mddt";
    -17_340 => "ppmt";
    -16_800 => "sdmt";
    -15_408 => "cmt";
    -14_660 => "ffmt";
    -14_400 => "ast cddt edt ept ewt";
    -14_309 => "bmt";
    -13_884 => "smt";
    -13_840 => "amt";
    -13_236 => "pmt";
    -12_600 => "nst";
    -10_800 => "adt apt awt eddt";
    -9052 => "ndt";
    -9000 => "npt nwt";
    -7200 => "addt";
    -5400 => "nddt";
    -4056 => "fmt";
    -1521 => "dmt";
    0 => "gmt uct utc wet";
    3600 => "bst cet met wat west";
    5040 => "wmt";
    5736 => "kmt";
    5794 => "rmt";
    7200 => "bdst cat cest eet ist mest sast wast wemt";
    8440 => "jmt";
    9017 => "mmt";
    9394 => "lst";
    10_751 => "tbmt";
    10_800 => "cemt eat eest idt msk";
    12_344 => "tmt";
    14_400 => "iddt msd";
    16_279 => "mdst";
    18_000 => "pkt";
    21_600 => "pkst";
    25_025 => "imt";
    25_200 => "wib";
    25_590 => "plmt";
    28_800 => "awst hkt wita";
    30_600 => "kst";
    32_400 => "awdt hkst jst wit";
    34_200 => "acst cast";
    36_000 => "aest chst gst jdt kdt";
    37_800 => "acdt";
    39_600 => "aedt gdt";
    41_400 => "nzmt";
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
        ];
        for (text, seconds) in rows {
            assert_eq!(fixed(text), Some(seconds), "{text}");
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
