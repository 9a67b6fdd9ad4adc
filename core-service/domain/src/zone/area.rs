//! Areas, and whether they contain a point. Coordinates are treated as planar: exact enough for a
//! courier's range, and as displayed on a map.

use crate::address::LatLng;

/// The union of polygons.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Area(Vec<Polygon>);

/// The points inside an odd number of rings: inside the outer ring and outside its holes. A point
/// on an edge shared by two polygons belongs to only one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    rings: Vec<Vec<LatLng>>,
    bounds: Bounds,
}

/// The bounding box of points, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    pub south: f64,
    pub west: f64,
    pub north: f64,
    pub east: f64,
}

impl Area {
    pub fn new(polygons: Vec<Polygon>) -> Self {
        Self(polygons)
    }

    pub fn polygons(&self) -> &[Polygon] {
        &self.0
    }

    pub fn contains(&self, point: LatLng) -> bool {
        self.0.iter().any(|polygon| polygon.contains(point))
    }

    /// Counts the closing position of each ring too.
    pub fn position_count(&self) -> usize {
        let rings = self.0.iter().flat_map(|polygon| &polygon.rings);
        rings.map(Vec::len).sum()
    }

    pub fn bounds(&self) -> Bounds {
        let points = self.0.iter().flat_map(|polygon| &polygon.rings).flatten();
        Bounds::of(points)
    }
}

impl Polygon {
    /// The outer ring and its holes; each ring is closed.
    pub fn new(rings: Vec<Vec<LatLng>>) -> Self {
        Self {
            bounds: Bounds::of(rings.iter().flatten()),
            rings,
        }
    }

    pub fn rings(&self) -> &[Vec<LatLng>] {
        &self.rings
    }

    fn contains(&self, point: LatLng) -> bool {
        // Cheap, and rejects most points.
        if !self.bounds.contains(point) {
            return false;
        }
        let edges = self.rings.iter().flat_map(|ring| ring.array_windows());
        let crossed = edges.filter(|[from, to]| is_west_of_edge(point, *from, *to));
        crossed.count() % 2 == 1
    }
}

impl Bounds {
    fn of<'a>(points: impl Iterator<Item = &'a LatLng>) -> Self {
        let empty = Self {
            south: f64::INFINITY,
            west: f64::INFINITY,
            north: f64::NEG_INFINITY,
            east: f64::NEG_INFINITY,
        };
        points.fold(empty, |bounds, point| Self {
            south: bounds.south.min(point.latitude()),
            west: bounds.west.min(point.longitude()),
            north: bounds.north.max(point.latitude()),
            east: bounds.east.max(point.longitude()),
        })
    }

    /// `None` for an empty box.
    pub fn center(self) -> Option<LatLng> {
        let latitude = f64::midpoint(self.south, self.north);
        LatLng::new(latitude, f64::midpoint(self.west, self.east)).ok()
    }

    fn contains(self, point: LatLng) -> bool {
        (self.south..=self.north).contains(&point.latitude())
            && (self.west..=self.east).contains(&point.longitude())
    }
}

/// Whether a ray from the point to the east crosses an edge.
fn is_west_of_edge(point: LatLng, from: LatLng, to: LatLng) -> bool {
    let (latitude, longitude) = (point.latitude(), point.longitude());
    if (from.latitude() > latitude) == (to.latitude() > latitude) {
        return false;
    }
    let fraction = (latitude - from.latitude()) / (to.latitude() - from.latitude());
    longitude < from.longitude() + fraction * (to.longitude() - from.longitude())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    fn ring(positions: &[(f64, f64)]) -> Vec<LatLng> {
        let closed = positions.iter().chain(positions.first());
        closed
            .map(|(latitude, longitude)| at(*latitude, *longitude))
            .collect()
    }

    fn square(low: f64, high: f64) -> Vec<LatLng> {
        ring(&[(low, low), (low, high), (high, high), (high, low)])
    }

    #[test]
    fn a_hole_is_outside_and_an_island_in_it_inside() {
        let ring_road = Area::new(vec![
            Polygon::new(vec![square(0.0, 10.0), square(4.0, 6.0)]),
            Polygon::new(vec![square(4.5, 5.5)]),
        ]);

        for (latitude, longitude, inside) in [
            (1.0, 1.0, true),
            (4.2, 4.2, false),
            (5.0, 5.0, true),
            (11.0, 5.0, false),
            (5.0, 7.0, true),
            (-1.0, -1.0, false),
        ] {
            assert_eq!(ring_road.contains(at(latitude, longitude)), inside);
        }
        assert_eq!(ring_road.position_count(), 15);
        assert!(!Area::default().contains(at(0.0, 0.0)));
    }

    #[test]
    fn the_overlap_of_polygons_is_inside() {
        let overlapping = Area::new(
            [square(0.0, 6.0), square(4.0, 10.0)]
                .map(|ring| Polygon::new(vec![ring]))
                .to_vec(),
        );

        assert!(overlapping.contains(at(5.0, 5.0)));
    }

    #[test]
    fn the_bay_of_a_concave_area_is_outside() {
        let bay = ring(&[(0.0, 0.0), (0.0, 9.0), (9.0, 9.0), (1.0, 4.5), (9.0, 0.0)]);
        let bay = Area::new(vec![Polygon::new(vec![bay])]);

        assert!(!bay.contains(at(8.0, 4.5)));
        assert!(bay.contains(at(8.0, 0.2)) && bay.contains(at(8.0, 8.8)));
    }

    #[test]
    fn the_southern_and_western_borders_are_inside_and_the_others_outside() {
        let area = Polygon::new(vec![square(0.0, 10.0)]);

        for (latitude, longitude, inside) in [
            (5.0, 0.0, true),
            (0.0, 5.0, true),
            (0.0, 0.0, true),
            (5.0, 10.0, false),
            (10.0, 5.0, false),
            (10.0, 0.0, false),
            (0.0, 10.0, false),
        ] {
            let point = at(latitude, longitude);
            assert_eq!(area.contains(point), inside, "{point:?}");
        }
    }

    proptest! {
        /// Every point near a shared border belongs to exactly one of two neighbours.
        #[test]
        fn adjacent_polygons_leave_no_gap_and_share_no_point(
            border in -9.0..9.0_f64, tilt in -1.0..1.0_f64,
            latitude in -10.0..10.0_f64, offset in -1.0..1.0_f64,
        ) {
            let (low, high) = (border - tilt, border + tilt);
            let west = ring(&[(-10.0, -20.0), (-10.0, low), (10.0, high), (10.0, -20.0)]);
            let east = ring(&[(-10.0, 20.0), (-10.0, low), (10.0, high), (10.0, 20.0)]);
            let [west, east] = [west, east].map(|ring| Polygon::new(vec![ring]));
            let on_border = low + (high - low) * (latitude + 10.0) / 20.0;

            for longitude in [on_border, on_border + offset, on_border.next_up()] {
                let point = at(latitude, longitude);
                prop_assert_ne!(west.contains(point), east.contains(point));
            }
        }

        #[test]
        fn the_bounding_box_does_not_change_the_result(
            positions in prop::collection::vec((-20.0..20.0_f64, -20.0..20.0_f64), 3..12),
            latitude in -25.0..25.0_f64, longitude in -25.0..25.0_f64,
        ) {
            let boxed = Polygon::new(vec![ring(&positions)]);
            let whole_earth = Bounds { south: -90.0, west: -180.0, north: 90.0, east: 180.0 };
            let unboxed = Polygon { bounds: whole_earth, ..boxed.clone() };
            let point = at(latitude, longitude);

            prop_assert_eq!(boxed.contains(point), unboxed.contains(point));
        }
    }
}
