//! Settings of the router, and of the fallback while it is unavailable.

use std::time::Duration;

use clap::{Args, ValueEnum};
use domain::{address::LatLng, delivery::Route};
use process::{number, redacted::Redacted};
use upstream::Monitor;
use url::Url;

use super::{Error, Osrm, OsrmError, Router, straight_line};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fallback {
    /// Estimate the route, marked as such in prices and deliveries (`distanceSource`)
    StraightLine,
    /// Reject deliveries and prices as temporarily unavailable (503)
    Refuse,
}

impl Fallback {
    /// Replaces the error of an unavailable router by an estimate, whose source tells so, if the
    /// operator wants that.
    pub(super) fn apply(
        self,
        route: Result<Route, Error>,
        (from, to): (LatLng, LatLng),
    ) -> Result<Route, Error> {
        match (route, self) {
            (Err(error @ Error::Unavailable(_)), Self::StraightLine) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "router unavailable, estimating the route"
                );
                Ok(straight_line::estimate(from, to))
            }
            // `NoRoute` is a valid result.
            (route, _) => route,
        }
    }
}

impl RouterConfig {
    /// A client of the configured OSRM server, if there is one.
    pub(crate) fn osrm(&self) -> Result<Option<Osrm>, OsrmError> {
        let concurrency = usize::from(self.osrm_concurrency);
        let osrm = self.osrm_url.as_ref().map(|url| {
            let url = url.expose();
            Osrm::new(url, &self.osrm_profile, self.osrm_timeout, concurrency)
        });
        osrm.transpose()
    }

    /// Creates the configured router. Adds the monitor of its HTTP client, if it has one.
    pub(crate) fn open(&self, upstreams: &mut Vec<Monitor>) -> Result<Router, OsrmError> {
        let osrm = self.osrm()?;
        upstreams.extend(osrm.as_ref().map(Osrm::monitor));
        Ok(Router {
            osrm,
            fallback: self.osrm_fallback,
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::delivery::DistanceSource;

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

    #[test]
    fn the_fallback_replaces_only_an_unavailable_router() {
        let points: [_; 2] = [48.0, 48.1].map(|latitude| LatLng::new(latitude, 2.0).unwrap());
        let route = |route| Fallback::StraightLine.apply(route, points.into());
        let found = Route {
            distance_meters: 1,
            duration_seconds: 1,
            source: DistanceSource::Osrm,
        };
        let unavailable = || Err(Error::Unavailable("down".into()));

        assert_eq!(route(Ok(found)).unwrap(), found);
        assert_eq!(
            route(unavailable()).unwrap().source,
            DistanceSource::StraightLine
        );
        assert!(matches!(route(Err(Error::NoRoute)), Err(Error::NoRoute)));
        let refused = Fallback::Refuse.apply(unavailable(), points.into());
        assert!(matches!(refused, Err(Error::Unavailable(_))));
    }
}
