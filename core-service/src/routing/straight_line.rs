//! The way as the crow flies, made longer by what streets usually add.

use domain::{
    address::LatLng,
    delivery::{DistanceSource, Route},
};
use futures_util::{FutureExt, future::BoxFuture};

use super::{Error, Router, whole};

/// Estimates a way without a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StraightLine {
    /// How much longer streets are than the great circle, at least 1.
    pub detour_factor: f64,
    /// A courier's mean speed, stops at lights included; above 0.
    pub meters_per_second: f64,
}

/// Street networks of cities lie between 1.2 (grids) and 1.4 (rivers and railways to cross).
const DETOUR_FACTOR: f64 = 1.3;
/// A bicycle courier in a city: 15 km/h.
const METERS_PER_SECOND: f64 = 15_000.0 / 3600.0;

impl Default for StraightLine {
    fn default() -> Self {
        Self {
            detour_factor: DETOUR_FACTOR,
            meters_per_second: METERS_PER_SECOND,
        }
    }
}

impl StraightLine {
    /// The estimate, in whole metres and seconds. Distances beyond any on the earth saturate.
    pub fn estimate(self, from: LatLng, to: LatLng) -> Route {
        let meters = from.distance_meters(to) * self.detour_factor;
        Route {
            meters: whole(meters),
            seconds: whole(meters / self.meters_per_second),
            source: DistanceSource::StraightLine,
        }
    }
}

impl Router for StraightLine {
    fn route(&self, from: LatLng, to: LatLng) -> BoxFuture<'_, Result<Route, Error>> {
        std::future::ready(Ok(self.estimate(from, to))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    #[tokio::test]
    async fn a_route_is_the_straight_line_with_its_detours() {
        let (from, to) = (point(48.0, 2.0), point(48.009, 2.0));
        let straight_line = StraightLine {
            detour_factor: 1.5,
            meters_per_second: 5.0,
        };

        let route = straight_line.route(from, to).await.unwrap();

        assert_eq!(
            route,
            Route {
                meters: 1501,
                seconds: 300,
                source: DistanceSource::StraightLine,
            }
        );
    }

    #[test]
    fn an_unset_speed_saturates() {
        let standing = StraightLine {
            meters_per_second: 0.0,
            ..StraightLine::default()
        };
        let route = standing.estimate(point(48.0, 2.0), point(48.1, 2.0));

        assert_eq!(route.seconds, u32::MAX);
    }
}
