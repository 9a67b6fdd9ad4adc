//! Points as integers in ten-millionths of a degree: exact to a centimetre. SQLite stores each
//! coordinate in four bytes.

use domain::address::LatLng;

const UNITS_PER_DEGREE: f64 = 1e7;
/// Map cells have sides of a quarter of a degree.
const CELLS_PER_DEGREE: f64 = 4.0;
const CELLS_PER_ROW: i64 = 1440;
const METERS_PER_DEGREE: f64 = 111_195.0;

/// Converts to latitude and longitude in ten-millionths of degrees.
#[expect(clippy::cast_possible_truncation, reason = "±180e7 fits")]
pub(super) fn to_units(point: LatLng) -> (i64, i64) {
    let units = |degrees: f64| (degrees * UNITS_PER_DEGREE).round() as i64;
    (units(point.latitude()), units(point.longitude()))
}

/// `None` if out of range.
#[expect(clippy::cast_precision_loss, reason = "±180e7 is exact")]
pub(super) fn from_units(latitude: i64, longitude: i64) -> Option<LatLng> {
    LatLng::new(
        latitude as f64 / UNITS_PER_DEGREE,
        longitude as f64 / UNITS_PER_DEGREE,
    )
    .ok()
}

/// The map cell that contains a point.
pub(super) fn cell(point: LatLng) -> i64 {
    cell_number(row(point.latitude()), column(point.longitude()))
}

/// The map cells within a distance of a point.
pub(super) fn cells_within(point: LatLng, meters: f64) -> Vec<i64> {
    let latitude_margin = meters / METERS_PER_DEGREE;
    // Near the poles all longitudes are close.
    let longitude_margin =
        (latitude_margin / point.latitude().to_radians().cos().max(0.01)).min(180.0);
    let (latitude, longitude) = (point.latitude(), point.longitude());
    let rows = row(latitude - latitude_margin)..=row(latitude + latitude_margin);
    rows.flat_map(|row| {
        let columns = column(longitude - longitude_margin)..=column(longitude + longitude_margin);
        columns.map(move |column| cell_number(row, column))
    })
    .collect()
}

fn row(latitude: f64) -> i64 {
    whole_cells(latitude + 90.0)
}

fn column(longitude: f64) -> i64 {
    whole_cells(longitude + 180.0)
}

#[expect(clippy::cast_possible_truncation, reason = "a few thousand at most")]
fn whole_cells(degrees: f64) -> i64 {
    (degrees * CELLS_PER_DEGREE).floor() as i64
}

fn cell_number(row: i64, column: i64) -> i64 {
    row * CELLS_PER_ROW + column.rem_euclid(CELLS_PER_ROW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_decimals_round_trip_exactly() {
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
    fn the_cells_around_a_point_contain_nearby_points() {
        for (latitude, longitude) in [(48.85, 2.35), (0.0, 179.99), (-54.8, -68.3), (89.99, 0.0)] {
            let point = LatLng::new(latitude, longitude).unwrap();
            let cells = cells_within(point, 30_000.0);
            assert!(cells.contains(&cell(point)), "{point:?}");
            let nearby = LatLng::new((latitude + 0.2).min(90.0), longitude).unwrap();
            assert!(cells.contains(&cell(nearby)), "{point:?}");
        }
        let far_east = LatLng::new(0.0, 179.99).unwrap();
        let far_west = LatLng::new(0.0, -179.99).unwrap();
        assert!(cells_within(far_east, 30_000.0).contains(&cell(far_west)));
    }
}
