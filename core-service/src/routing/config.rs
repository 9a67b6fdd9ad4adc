//! Which router is asked, and what happens while it does not answer.

use std::time::Duration;

use clap::{Args, ValueEnum};
use url::Url;

use super::{Osrm, OsrmError, Router, StraightLine, WithFallback};

/// What knows the ways that couriers take.
#[derive(Args, Clone, Debug)]
pub struct RouterConfig {
    /// Address of an OSRM server that knows the ways. Without one they are estimated: the
    /// straight line made longer by three tenths, at 15 km/h.
    #[arg(
        long,
        env = "DELIVERY_OSRM_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub osrm_url: Option<Url>,

    /// The OSRM profile: how couriers travel.
    #[arg(
        long,
        env = "DELIVERY_OSRM_PROFILE",
        value_name = "NAME",
        default_value = "bike"
    )]
    pub osrm_profile: String,

    /// How long the OSRM server may take for an answer.
    #[arg(
        long,
        env = "DELIVERY_OSRM_TIMEOUT",
        value_name = "TIME",
        default_value = "2s",
        value_parser = upstream::parse_deadline
    )]
    pub osrm_timeout: Duration,

    /// How many questions the OSRM server is asked at once.
    #[arg(
        long,
        env = "DELIVERY_OSRM_CONCURRENCY",
        value_name = "NUMBER",
        default_value_t = 32,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub osrm_concurrency: u16,

    /// What happens while the OSRM server does not answer.
    #[arg(
        long,
        env = "DELIVERY_OSRM_FALLBACK",
        value_enum,
        default_value_t = Fallback::StraightLine
    )]
    pub osrm_fallback: Fallback,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fallback {
    /// The way is estimated, and its price and delivery say so (`distanceSource`)
    StraightLine,
    /// Deliveries and prices are refused, to be tried again (503)
    Refuse,
}

impl RouterConfig {
    /// The router that is configured.
    pub(crate) fn open(&self) -> Result<Box<dyn Router>, OsrmError> {
        let fallback = StraightLine::default();
        let Some(url) = &self.osrm_url else {
            return Ok(Box::new(fallback));
        };
        let in_flight = usize::from(self.osrm_concurrency);
        let router = Osrm::new(url, &self.osrm_profile, self.osrm_timeout, in_flight)?;
        Ok(match self.osrm_fallback {
            Fallback::StraightLine => Box::new(WithFallback { router, fallback }),
            Fallback::Refuse => Box::new(router),
        })
    }
}

impl Default for RouterConfig {
    fn default() -> Self {
        Self {
            osrm_url: None,
            osrm_profile: "bike".to_owned(),
            osrm_timeout: Duration::from_secs(2),
            osrm_concurrency: 32,
            osrm_fallback: Fallback::StraightLine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_be_asked_is_refused_at_the_start() {
        let config = |url: &str| RouterConfig {
            osrm_url: Some(url.parse().unwrap()),
            ..RouterConfig::default()
        };

        assert!(RouterConfig::default().open().is_ok());
        assert!(config("http://127.0.0.1:5000").open().is_ok());
        assert!(config("ftp://127.0.0.1").open().is_err());
    }
}
