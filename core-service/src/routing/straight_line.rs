//! Estimates routes by the straight line and a detour factor.

use domain::{
    address::LatLng,
    delivery::{DistanceSource, Route},
};

/// Ratio of street distance to great-circle distance. City street networks have factors between 1.2
/// (grids) and 1.4 (rivers and railways).
const DETOUR_FACTOR: f64 = 1.3;
/// The average speed of a bicycle courier in a city, with stops: 15 km/h.
const METERS_PER_SECOND: f64 = 15_000.0 / 3600.0;

/// The estimated route in whole metres and seconds, with saturation.
pub(super) fn estimate(from: LatLng, to: LatLng) -> Route {
    let meters = from.distance_meters(to) * DETOUR_FACTOR;
    let seconds = meters / METERS_PER_SECOND;
    Route::rounded(meters, seconds, DistanceSource::StraightLine)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    #[test]
    fn a_route_is_the_straight_line_with_detours() {
        let (from, to) = (point(48.0, 2.0), point(48.009, 2.0));

        assert_eq!(
            estimate(from, to),
            Route {
                distance_meters: 1301,
                duration_seconds: 312,
                source: DistanceSource::StraightLine,
            }
        );
    }
}
