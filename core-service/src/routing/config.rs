//! Settings of the router.

use std::time::Duration;

use clap::Args;
use process::{number, redacted::Redacted};
use upstream::Monitor;
use url::Url;

use super::{Router, fallback::Fallback, osrm::Osrm};

/// Settings of the router.
#[derive(Args, Clone, Debug)]
pub struct RouterConfig {
    /// URL of an OSRM server for distances and durations. Without it they are estimated: 1.3 times
    /// the straight line, at 15 km/h. Default: none. Example: `http://osrm.internal:5000`.
    #[arg(
        long,
        env = "DELIVERY_OSRM_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub osrm_url: Option<Redacted<Url>>,

    /// OSRM profile: how couriers travel. Example: `car`.
    #[arg(
        long,
        env = "DELIVERY_OSRM_PROFILE",
        value_name = "NAME",
        default_value = "bike"
    )]
    pub osrm_profile: String,

    /// Timeout of a request to the OSRM server, up to 20s. Example: `500ms`.
    #[arg(
        long,
        env = "DELIVERY_OSRM_TIMEOUT",
        value_name = "DURATION",
        default_value = "2s",
        value_parser = upstream::parse_timeout
    )]
    pub osrm_timeout: Duration,

    /// Limit of concurrent requests to the OSRM server. Example: `64`.
    #[arg(
        long,
        env = "DELIVERY_OSRM_CONCURRENCY",
        value_name = "NUMBER",
        default_value_t = 32,
        value_parser = number::within((1_u16, u16::MAX), 32)
    )]
    pub osrm_concurrency: u16,

    /// Behavior while the OSRM server is unavailable. Example: `refuse`.
    #[arg(
        long,
        env = "DELIVERY_OSRM_FALLBACK",
        value_enum,
        default_value_t = Fallback::StraightLine
    )]
    pub osrm_fallback: Fallback,
}

impl RouterConfig {
    /// Creates the configured router. Adds the monitor of its HTTP client, if it has one.
    pub(crate) fn open(&self, upstreams: &mut Vec<Monitor>) -> anyhow::Result<Router> {
        let concurrency = usize::from(self.osrm_concurrency);
        let client = |url: &Redacted<Url>| {
            let (url, profile) = (url.expose(), &self.osrm_profile);
            Osrm::new(url, profile, self.osrm_timeout, concurrency)
        };
        let osrm = self.osrm_url.as_ref().map(client).transpose()?;
        upstreams.extend(osrm.as_ref().map(Osrm::monitor));
        Ok(Router {
            osrm,
            fallback: self.osrm_fallback,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsupported_url_is_rejected_at_startup() {
        let is_accepted = |flags: &[&str]| {
            let config: RouterConfig = process::command_line::settings(flags);
            config.open(&mut Vec::new()).is_ok()
        };

        assert!(is_accepted(&[]));
        assert!(is_accepted(&["--osrm-url=http://127.0.0.1:5000"]));
        assert!(!is_accepted(&["--osrm-url=ftp://127.0.0.1"]));
    }
}
