//! Estimates routes by the straight line and a detour factor.

use domain::{
    address::LatLng,
    delivery::{DistanceSource, Route},
};
use futures_util::{FutureExt, future::BoxFuture};

use super::{Error, Router, whole};

/// Estimates routes without a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StraightLine {
    /// Ratio of street distance to great-circle distance, at least 1.
    pub detour_factor: f64,
    /// Average speed of a courier including stops, above 0.
    pub meters_per_second: f64,
}

/// City street networks have factors between 1.2 (grids) and 1.4 (rivers and railways).
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
    /// The estimated route in whole metres and seconds, with saturation.
    pub fn estimate(self, from: LatLng, to: LatLng) -> Route {
        let meters = from.distance_meters(to) * self.detour_factor;
        Route {
            distance_meters: whole(meters),
            duration_seconds: whole(meters / self.meters_per_second),
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
    async fn a_route_is_the_straight_line_with_detours() {
        let (from, to) = (point(48.0, 2.0), point(48.009, 2.0));
        let straight_line = StraightLine {
            detour_factor: 1.5,
            meters_per_second: 5.0,
        };

        let route = straight_line.route(from, to).await.unwrap();

        assert_eq!(
            route,
            Route {
                distance_meters: 1501,
                duration_seconds: 300,
                source: DistanceSource::StraightLine,
            }
        );
    }

    #[test]
    fn the_duration_saturates_at_speed_zero() {
        let stopped = StraightLine {
            meters_per_second: 0.0,
            ..StraightLine::default()
        };
        let route = stopped.estimate(point(48.0, 2.0), point(48.1, 2.0));

        assert_eq!(route.duration_seconds, u32::MAX);
    }
}
