//! Where a store delivers: its service area, as configured, and its coverage, which has the points and
//! zones that the area refers to. Decides which points a store delivers to, and near which point
//! address texts are searched.

use serde::{Deserialize, Serialize};

use crate::{address::LatLng, zone::Zones};

/// A store's service area, as configured by an operator. As JSON, it has its stored form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ServiceArea {
    /// A zone by name; follows later changes of the zone.
    #[serde(rename = "zone")]
    Zone(String),
    #[serde(untagged)]
    Circle(Circle),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "StoredCircle", try_from = "StoredCircle")]
pub struct Circle {
    /// The store's default address if absent.
    center: Option<LatLng>,
    radius_meters: u32,
}

#[derive(Serialize, Deserialize)]
struct StoredCircle {
    /// Latitude, longitude.
    #[serde(skip_serializing_if = "Option::is_none")]
    center: Option<[f64; 2]>,
    radius_meters: u32,
}

impl From<Circle> for StoredCircle {
    fn from(circle: Circle) -> Self {
        let center = circle.center;
        Self {
            center: center.map(|center| [center.latitude(), center.longitude()]),
            radius_meters: circle.radius_meters,
        }
    }
}

impl TryFrom<StoredCircle> for Circle {
    type Error = String;

    fn try_from(stored: StoredCircle) -> Result<Self, String> {
        let center = stored
            .center
            .map(|[latitude, longitude]| LatLng::new(latitude, longitude));
        Self::new(center.transpose()?, stored.radius_meters)
    }
}

const MIN_RADIUS: u32 = 100;
const MAX_RADIUS: u32 = 1_000_000;

impl Circle {
    /// A circle around a point, or around the store's default address.
    pub fn new(center: Option<LatLng>, radius_meters: u32) -> Result<Self, String> {
        if (MIN_RADIUS..=MAX_RADIUS).contains(&radius_meters) {
            Ok(Self {
                center,
                radius_meters,
            })
        } else {
            Err(format!(
                "a radius of {radius_meters} m is out of range; give 100 m to 1000 km"
            ))
        }
    }

    pub fn center(self) -> Option<LatLng> {
        self.center
    }

    pub fn radius_meters(self) -> u32 {
        self.radius_meters
    }
}

/// Where a store delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum Coverage {
    /// No service area is configured.
    Unlimited {
        /// The point of the store's address, if known.
        store: Option<LatLng>,
    },
    Circle {
        center: LatLng,
        radius_meters: u32,
    },
    Zone {
        name: String,
        zones: Zones,
        /// The point of the store's address, if known.
        store: Option<LatLng>,
    },
}

/// The assumed range of a store without a service area, used only to detect swapped coordinates.
const ASSUMED_RANGE_METERS: u32 = 100_000;

impl Coverage {
    /// The coverage of an unknown store, or of one with a radius but no address: every address.
    pub const UNKNOWN: Self = Self::Unlimited { store: None };

    /// The point near which address texts are searched.
    pub fn search_center(&self) -> Option<LatLng> {
        match self {
            Self::Unlimited { store } => *store,
            Self::Circle { center, .. } => Some(*center),
            // A store may be outside the zone it delivers to.
            Self::Zone { name, zones, store } => store
                .filter(|store| zones.contains(name, *store) == Some(true))
                .or_else(|| zones.area(name)?.bounds().center()),
        }
    }

    /// The reason why the store does not deliver to a point; `None` if it does.
    pub fn rejection(&self, point: LatLng) -> Option<String> {
        match self {
            Self::Unlimited { .. } => None,
            Self::Circle {
                center,
                radius_meters,
            } => {
                let meters = center.distance_meters(point);
                let radius = f64::from(*radius_meters);
                let kilometers = |meters: f64| (meters / 100.0).round() / 10.0;
                (meters > radius).then(|| {
                    format!(
                        "is {} km away: the store delivers within {} km",
                        kilometers(meters),
                        kilometers(radius)
                    )
                })
            }
            Self::Zone { name, .. } => (!self.covers(point))
                .then(|| format!("is outside of {name:?}, where the store delivers")),
        }
    }

    /// Like [`Coverage::rejection`], for a geocoded address.
    pub fn rejection_of_address(&self, address: &str, point: LatLng) -> Option<String> {
        let rejection = self.rejection(point)?;
        Some(format!("found {address}, which {rejection}"))
    }

    /// The message for coordinates that are probably swapped: the point is not covered, and the
    /// swapped point is.
    pub fn swapped_coordinates(&self, point: LatLng) -> Option<String> {
        let (latitude, longitude) = (point.latitude(), point.longitude());
        let swapped = LatLng::new(longitude, latitude).ok()?;
        (!self.covers(point) && self.covers(swapped)).then(|| {
            format!(
                "latitude {latitude} and longitude {longitude} seem swapped: that is far from where \
                 the store delivers, and latitude {longitude}, longitude {latitude} is not"
            )
        })
    }

    /// Whether a point is in the service area or, without one, in the assumed range of the store.
    fn covers(&self, point: LatLng) -> bool {
        let is_within =
            |center: LatLng, meters: u32| center.distance_meters(point) <= f64::from(meters);
        match self {
            Self::Unlimited { store } => {
                store.is_none_or(|store| is_within(store, ASSUMED_RANGE_METERS))
            }
            Self::Circle {
                center,
                radius_meters,
            } => is_within(*center, *radius_meters),
            Self::Zone { name, zones, .. } => zones.contains(name, point) == Some(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Around Paris, longitude first.
    const ZONES: &str = r#"{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"name":"Centre"},"geometry":{"type":"Polygon","coordinates":[[[2.2,48.8],[2.4,48.8],[2.4,48.9],[2.2,48.9],[2.2,48.8]]]}}]}"#;

    fn point(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    fn coverages(store: Option<LatLng>) -> [Coverage; 3] {
        [
            Coverage::Unlimited { store },
            Coverage::Circle {
                center: point(48.85, 2.3),
                radius_meters: 5_000,
            },
            Coverage::Zone {
                name: "Centre".to_owned(),
                zones: Zones::parse(ZONES).unwrap(),
                store,
            },
        ]
    }

    #[test]
    fn a_rejection_names_the_service_area() {
        let [unlimited, circle, zone] = coverages(Some(point(48.85, 2.3)));

        for coverage in [&unlimited, &circle, &zone] {
            assert_eq!(coverage.rejection(point(48.86, 2.31)), None);
        }
        let outside = point(48.95, 2.3);
        assert_eq!(unlimited.rejection(outside), None);
        assert_eq!(
            circle.rejection(outside).as_deref(),
            Some("is 11.1 km away: the store delivers within 5 km")
        );
        assert_eq!(
            zone.rejection(outside).as_deref(),
            Some("is outside of \"Centre\", where the store delivers")
        );
    }

    #[test]
    fn coordinates_count_as_swapped_only_if_the_swapped_point_is_covered() {
        for coverage in coverages(Some(point(48.85, 2.3))) {
            let message = coverage.swapped_coordinates(point(2.31, 48.86)).unwrap();
            assert!(
                message.ends_with("and latitude 48.86, longitude 2.31 is not"),
                "{message}"
            );
            for other in [point(48.86, 2.31), point(-33.9, 18.4), point(60.0, 100.0)] {
                assert_eq!(coverage.swapped_coordinates(other), None);
            }
        }
        let unknown = Coverage::UNKNOWN;
        assert_eq!(unknown.swapped_coordinates(point(2.31, 48.86)), None);
    }

    #[test]
    fn texts_are_searched_near_the_store_if_it_is_inside_its_service_area() {
        let centers = |store| coverages(store).map(|coverage| coverage.search_center());
        let circle = Some(point(48.85, 2.3));
        let (inside, outside) = (Some(point(48.81, 2.21)), Some(point(50.6, 3.0)));

        assert_eq!(centers(inside), [inside, circle, inside]);
        let [unlimited, _, zone] = centers(outside);
        assert_eq!(unlimited, outside);
        let center = zone.unwrap();
        assert!((center.latitude() - 48.85).abs() < 1e-9, "{center:?}");
        assert!((center.longitude() - 2.3).abs() < 1e-9, "{center:?}");
    }

    #[test]
    fn the_border_of_a_circle_is_inside() {
        let center = point(48.85, 2.3);
        let circle = Coverage::Circle {
            center,
            radius_meters: 0,
        };

        assert_eq!(circle.rejection(center), None);
    }

    #[test]
    fn a_rejection_of_a_geocoded_address_names_the_address_found() {
        let [_, circle, _] = coverages(None);

        assert_eq!(
            circle.rejection_of_address("1 Rue A", point(48.85, 2.3)),
            None
        );
        assert_eq!(
            circle
                .rejection_of_address("1 Rue A", point(48.95, 2.3))
                .as_deref(),
            Some("found 1 Rue A, which is 11.1 km away: the store delivers within 5 km")
        );
    }

    #[test]
    fn a_radius_is_between_its_limits() {
        let center = LatLng::new(48.85, 2.3).ok();
        for radius in [100, 1_000_000] {
            let circle = Circle::new(center, radius).unwrap();
            assert_eq!((circle.center(), circle.radius_meters()), (center, radius));
        }
        for radius in [0, 99, 1_000_001] {
            let expected = format!("a radius of {radius} m is out of range; give 100 m to 1000 km");
            assert_eq!(Circle::new(None, radius), Err(expected));
        }
    }
}
