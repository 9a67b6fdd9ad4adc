//! Parses durations in flags and environment variables: `500ms`, `15s`, `1h 30m`, `30d`.

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Reads a duration above zero. A day is 24 hours; months and years have no fixed length and are
/// rejected.
pub fn parse(text: &str) -> Result<Duration, String> {
    text.parse::<Span>()
        .ok()
        .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok())
        .and_then(|duration| Duration::try_from(duration).ok())
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| "not a duration above zero: write it as `500ms`, `15s` or `30d`".to_owned())
}

/// Like [`parse`], with zero: `0` or `0s`.
pub fn parse_or_zero(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s") {
        return Ok(Duration::ZERO);
    }
    parse(text).map_err(|_| "not a duration: write it as `12h`, `1d` or `0`".to_owned())
}

/// Like [`parse`], up to and including a limit.
pub fn parse_up_to(limit: Duration, text: &str) -> Result<Duration, String> {
    let duration = parse(text)?;
    if duration > limit {
        let limit = jiff::SignedDuration::try_from(limit)
            .map_or_else(|_| format!("{limit:?}"), |limit| format!("{limit:#}"));
        return Err(format!("longer than the maximum of {limit}"));
    }
    Ok(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        for (text, expected) in [
            ("500ms", Duration::from_millis(500)),
            ("1.5s", Duration::from_millis(1500)),
            ("15s", Duration::from_secs(15)),
            ("1h 30m", Duration::from_mins(90)),
            ("30d", Duration::from_hours(30 * 24)),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_but_a_fixed_duration_above_zero_is_rejected() {
        for text in ["", "15", "0s", "-1s", "soon", "1 month", "1y"] {
            let error = parse(text).unwrap_err();
            assert_eq!(
                error, "not a duration above zero: write it as `500ms`, `15s` or `30d`",
                "{text}"
            );
        }
    }

    #[test]
    fn only_zero_needs_no_unit() {
        for zero in ["0", "0s"] {
            assert_eq!(parse_or_zero(zero), Ok(Duration::ZERO));
        }
        assert_eq!(parse_or_zero("12h"), Ok(Duration::from_hours(12)));
        for wrong in ["", "86400", "-1s", "1 month"] {
            let error = "not a duration: write it as `12h`, `1d` or `0`".to_owned();
            assert_eq!(parse_or_zero(wrong), Err(error), "{wrong}");
        }
    }

    #[test]
    fn a_limit_is_included() {
        let day = Duration::from_hours(24);
        assert_eq!(parse_up_to(day, "1d"), Ok(day));
        assert_eq!(
            parse_up_to(day, "25h"),
            Err("longer than the maximum of 24h".to_owned())
        );
    }
}
