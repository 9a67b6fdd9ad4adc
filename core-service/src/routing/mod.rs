//! Distance and duration of a route between two points.

mod osrm;

use std::time::Duration;

use clap::{Args, ValueEnum};
use domain::{
    address::LatLng,
    delivery::{DistanceSource, Route},
};
use process::{number, redacted::Redacted};
use upstream::Monitor;
use url::Url;

use self::osrm::Osrm;

/// Ratio of street distance to great-circle distance. City street networks have factors between 1.2
/// (grids) and 1.4 (rivers and railways).
const DETOUR_FACTOR: f64 = 1.3;
/// The average speed of a bicycle courier in a city, with stops: 15 km/h.
const METERS_PER_SECOND: f64 = 15_000.0 / 3600.0;

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
        value_parser = number::within(1_u16, u16::MAX, 32)
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

/// What replaces the routes of an unavailable router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fallback {
    /// Estimate the route, marked as such in prices and deliveries (`distanceSource`)
    StraightLine,
    /// Reject deliveries and prices as temporarily unavailable (503)
    Refuse,
}

pub(crate) struct Router {
    /// `None`: all routes are estimated by the straight line.
    osrm: Option<Osrm>,
    fallback: Fallback,
}

impl Router {
    /// The route of a courier.
    pub(crate) async fn route(&self, from: LatLng, to: LatLng) -> Result<Route, Error> {
        match &self.osrm {
            None => Ok(straight_line(from, to)),
            Some(osrm) => {
                let route = osrm.route(from, to).await;
                self.fallback.apply(route, from, to)
            }
        }
    }
}

impl Fallback {
    /// Replaces the error of an unavailable router by an estimate, whose source tells so, if the
    /// operator wants that.
    fn apply(self, route: Result<Route, Error>, from: LatLng, to: LatLng) -> Result<Route, Error> {
        match (route, self) {
            (Err(error @ Error::Unavailable(_)), Self::StraightLine) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "router unavailable, estimating the route"
                );
                Ok(straight_line(from, to))
            }
            // `NoRoute` is a valid result.
            (route, _) => route,
        }
    }
}

/// The estimated route in whole metres and seconds, with saturation.
fn straight_line(from: LatLng, to: LatLng) -> Route {
    let meters = from.distance_meters(to) * DETOUR_FACTOR;
    let seconds = meters / METERS_PER_SECOND;
    Route::rounded(meters, seconds, DistanceSource::StraightLine)
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Temporary; can be retried.
    #[error("the router is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Both points are valid but not connected.
    #[error("there is no route from the pickup to the dropoff")]
    NoRoute,
}

impl Error {
    /// How long to wait until a retry may succeed, if known: until the circuit breaker lets a
    /// request through, or the router's `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable(source) => source.downcast_ref::<upstream::Error>()?.retry_after(),
            Self::NoRoute => None,
        }
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

    fn point(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    #[test]
    fn a_route_is_the_straight_line_with_detours() {
        let (from, to) = (point(48.0, 2.0), point(48.009, 2.0));

        assert_eq!(
            straight_line(from, to),
            Route {
                distance_meters: 1301,
                duration_seconds: 312,
                source: DistanceSource::StraightLine,
            }
        );
    }

    #[test]
    fn the_fallback_replaces_only_an_unavailable_router() {
        let (from, to) = (point(48.0, 2.0), point(48.1, 2.0));
        let route = |route| Fallback::StraightLine.apply(route, from, to);
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
        let refused = Fallback::Refuse.apply(unavailable(), from, to);
        assert!(matches!(refused, Err(Error::Unavailable(_))));
    }
}
