//! A rate limit and its text in settings.

use std::{num::NonZeroU32, str::FromStr, time::Duration};

use process::duration;

/// A number of requests per window. It is also the burst size, and is replenished evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    Off,
    PerWindow {
        requests: NonZeroU32,
        /// The length of the window in whole seconds, up to a day.
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
                "`{text}` is not a rate limit: write requests per time, such as `6000/1m`, or `off`"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_parsed_from_its_text() {
        let per = |requests, seconds| RateLimit::PerWindow {
            requests: NonZeroU32::new(requests).unwrap(),
            window: Duration::from_secs(seconds),
        };
        for (text, limit) in [
            ("off", RateLimit::Off),
            ("1/1s", per(1, 1)),
            ("6000/1m", per(6000, 60)),
            ("4294967295/86400s", per(u32::MAX, 86_400)),
        ] {
            assert_eq!(text.parse(), Ok(limit));
        }
        for wrong in [
            "", "10", "0/1s", "-1/1s", "10/0s", "10/500ms", "10/25h", "10/-1s", "OFF",
        ] {
            assert!(wrong.parse::<RateLimit>().is_err(), "{wrong}");
        }
    }
}
