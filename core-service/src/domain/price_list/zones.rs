//! Named areas that rules speak of.

use std::{collections::BTreeMap, sync::Arc};

use crate::domain::address::LatLng;

/// Areas by name. Cloning is cheap.
#[derive(Clone, Debug, Default)]
pub struct Zones(Arc<BTreeMap<String, Area>>);

/// An area bounded by rings: what lies inside an odd number of them, so that holes and several
/// parts need no further word (polygons and multi-polygons of RFC 7946 §3.1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Area {
    pub rings: Vec<Vec<LatLng>>,
}

impl Zones {
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether a point lies in a zone; `None` if there is no zone of that name.
    pub fn contains(&self, name: &str, point: LatLng) -> Option<bool> {
        Some(self.0.get(name)?.contains(point))
    }
}

impl FromIterator<(String, Area)> for Zones {
    fn from_iter<I: IntoIterator<Item = (String, Area)>>(areas: I) -> Self {
        Self(Arc::new(areas.into_iter().collect()))
    }
}

impl Area {
    fn contains(&self, point: LatLng) -> bool {
        let edges = self.rings.iter().flat_map(|ring| {
            let next = ring.iter().skip(1).chain(ring.first());
            ring.iter().zip(next)
        });
        let crossed = edges.filter(|(from, to)| is_west_of_edge(point, **from, **to));
        crossed.count() % 2 == 1
    }
}

/// Whether the way east from a point along its parallel crosses an edge.
fn is_west_of_edge(point: LatLng, from: LatLng, to: LatLng) -> bool {
    let (latitude, longitude) = (point.latitude(), point.longitude());
    if (from.latitude() > latitude) == (to.latitude() > latitude) {
        return false;
    }
    let part = (latitude - from.latitude()) / (to.latitude() - from.latitude());
    longitude < from.longitude() + part * (to.longitude() - from.longitude())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_inside_an_odd_number_of_rings() {
        let square = |low: f64, high: f64| -> Vec<LatLng> {
            [
                (low, low),
                (low, high),
                (high, high),
                (high, low),
                (low, low),
            ]
            .map(|(latitude, longitude)| LatLng::new(latitude, longitude).unwrap())
            .to_vec()
        };
        let ring_road = Area {
            rings: vec![square(0.0, 10.0), square(4.0, 6.0)],
        };
        let zones = Zones::from_iter([("ring road".to_owned(), ring_road)]);

        for (latitude, longitude, inside) in [
            (1.0, 1.0, true),
            (5.0, 5.0, false),
            (11.0, 5.0, false),
            (5.0, 7.0, true),
            (-1.0, -1.0, false),
        ] {
            let point = LatLng::new(latitude, longitude).unwrap();
            assert_eq!(
                zones.contains("ring road", point),
                Some(inside),
                "{point:?}"
            );
        }
        assert_eq!(
            zones.contains("harbour", LatLng::new(1.0, 1.0).unwrap()),
            None
        );
    }
}
