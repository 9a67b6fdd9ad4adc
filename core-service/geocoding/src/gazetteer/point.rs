//! Points as whole numbers: a ten-millionth of a degree is a centimetre, and fits four bytes.

use domain::address::LatLng;

const UNITS: f64 = 1e7;
/// Cells of the map, a quarter of a degree each way.
const CELLS_PER_DEGREE: f64 = 4.0;
const CELLS_AROUND: i64 = 1440;
const METERS_PER_DEGREE: f64 = 111_195.0;

/// Latitude and longitude.
#[expect(clippy::cast_possible_truncation, reason = "±180e7 fits")]
pub(super) fn to_units(point: LatLng) -> (i64, i64) {
    let units = |degrees: f64| (degrees * UNITS).round() as i64;
    (units(point.latitude()), units(point.longitude()))
}

/// None if it is nowhere on the earth.
#[expect(clippy::cast_precision_loss, reason = "±180e7 is exact")]
pub(super) fn from_units(latitude: i64, longitude: i64) -> Option<LatLng> {
    LatLng::new(latitude as f64 / UNITS, longitude as f64 / UNITS).ok()
}

/// The cell that a point is in.
pub(super) fn cell(point: LatLng) -> i64 {
    number(row(point.latitude()), column(point.longitude()))
}

/// The cells that are within some metres of a point.
pub(super) fn cells_within(point: LatLng, meters: f64) -> Vec<i64> {
    let up = meters / METERS_PER_DEGREE;
    // At the poles every longitude is near.
    let around = (up / point.latitude().to_radians().cos().max(0.01)).min(180.0);
    let (latitude, longitude) = (point.latitude(), point.longitude());
    let rows = row(latitude - up)..=row(latitude + up);
    rows.flat_map(|row| {
        let columns = column(longitude - around)..=column(longitude + around);
        columns.map(move |column| number(row, column))
    })
    .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a few thousand at most")]
fn row(latitude: f64) -> i64 {
    ((latitude + 90.0) * CELLS_PER_DEGREE).floor() as i64
}

#[expect(clippy::cast_possible_truncation, reason = "a few thousand at most")]
fn column(longitude: f64) -> i64 {
    ((longitude + 180.0) * CELLS_PER_DEGREE).floor() as i64
}

fn number(row: i64, column: i64) -> i64 {
    row * CELLS_AROUND + column.rem_euclid(CELLS_AROUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_of_seven_decimals_is_kept_exactly() {
        for (latitude, longitude) in [
            (48.87008, 2.33144),
            (-33.856_784_4, 151.215_296_7),
            (90.0, -180.0),
        ] {
            let point = LatLng::new(latitude, longitude).unwrap();
            let (latitude, longitude) = to_units(point);
            assert_eq!(from_units(latitude, longitude), Some(point));
        }
        assert_eq!(from_units(910_000_000, 0), None);
    }

    #[test]
    fn the_cells_around_a_point_hold_its_neighbours() {
        for (latitude, longitude) in [(48.85, 2.35), (0.0, 179.99), (-54.8, -68.3), (89.99, 0.0)] {
            let point = LatLng::new(latitude, longitude).unwrap();
            let cells = cells_within(point, 30_000.0);
            assert!(cells.contains(&cell(point)), "{point:?}");
            let beside = LatLng::new((latitude + 0.2).min(90.0), longitude).unwrap();
            assert!(
                cells.contains(&cell(beside)) || latitude > 89.0,
                "{point:?}"
            );
        }
        let far_east = LatLng::new(0.0, 179.99).unwrap();
        let far_west = LatLng::new(0.0, -179.99).unwrap();
        assert!(cells_within(far_east, 30_000.0).contains(&cell(far_west)));
    }
}
