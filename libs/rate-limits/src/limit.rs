//! A rate limit and its text in settings.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use process::duration;

/// A number of requests per window. It is also the burst size, and is replenished evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    Off,
    PerWindow {
        requests: NonZeroU32,
        /// In whole seconds, up to a day.
        window: Duration,
    },
}

impl FromStr for RateLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const MAX_WINDOW: Duration = Duration::from_hours(24);

        if text == "off" {
            return Ok(Self::Off);
        }
        let wrong = || {
            format!(
                "`{text}` is not a rate limit: write requests per time, such as `6000/60s`, or `off`"
            )
        };
        let (requests, window) = text.split_once('/').ok_or_else(wrong)?;
        let requests = requests.parse().map_err(|_| wrong())?;
        let window = duration::parse_up_to(MAX_WINDOW, window).map_err(|_| wrong())?;
        if window.subsec_nanos() > 0 {
            return Err(wrong());
        }
        Ok(Self::PerWindow { requests, window })
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::PerWindow { requests, window } => write!(f, "{requests}/{}s", window.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_parsed_from_its_text() {
        for text in ["off", "1/1s", "6000/60s", "4294967295/86400s"] {
            assert_eq!(text.parse::<RateLimit>().unwrap().to_string(), text);
        }
        assert_eq!("10/1m".parse(), "10/60s".parse::<RateLimit>());
        for wrong in [
            "", "10", "0/1s", "-1/1s", "10/0s", "10/500ms", "10/25h", "10/-1s", "OFF",
        ] {
            assert!(wrong.parse::<RateLimit>().is_err(), "{wrong}");
        }
    }
}
