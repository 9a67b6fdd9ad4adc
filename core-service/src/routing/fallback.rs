//! What replaces the routes of an unavailable router.

use clap::ValueEnum;
use domain::{address::LatLng, delivery::Route};

use super::{Error, straight_line};

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

#[cfg(test)]
mod tests {
    use domain::delivery::DistanceSource;

    use super::*;

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
