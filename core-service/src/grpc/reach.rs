//! Where a store delivers, as it is on the map now: points are judged by it, and texts are looked
//! up near it.

use domain::{address::LatLng, service_area::ServiceArea, store::Store, zone::Zones};

use super::{Core, in_force::Freshness};

use crate::error::Error;

/// A store's service area, with everything that it takes to judge a point.
pub(super) enum Reach {
    /// Nobody said how far; perhaps it is known where the store is.
    Anywhere {
        store: Option<LatLng>,
    },
    Circle {
        center: LatLng,
        radius_meters: u32,
    },
    Zone {
        name: String,
        zones: Zones,
        store: Option<LatLng>,
    },
}

/// How far a store that says nothing delivers at most, for all that is known of it.
const FAR_METERS: u32 = 100_000;

impl Core {
    /// Where a store delivers. A zone is the one that is in force, whichever core it was applied
    /// at.
    pub(super) async fn reach(&self, store: &Store, freshness: Freshness) -> Result<Reach, Error> {
        let address = store.default_address.as_ref();
        let address = address.map(|address| address.lat_lng);
        match &store.service_area {
            None => Ok(Reach::Anywhere { store: address }),
            Some(ServiceArea::Circle(circle)) => Ok(match circle.center().or(address) {
                Some(center) => Reach::Circle {
                    center,
                    radius_meters: circle.radius_meters(),
                },
                None => Reach::Anywhere { store: None },
            }),
            Some(ServiceArea::Zone(name)) => {
                let (_, zones) = self.zones(freshness).await?;
                // It was there when the store was given it, and zones are never removed.
                if !zones.has(name) {
                    let store = store.id;
                    return Err(Error::Bug(format!(
                        "the zone {name:?}, where store {store} delivers, is not there"
                    )));
                }
                Ok(Reach::Zone {
                    name: name.clone(),
                    zones,
                    store: address,
                })
            }
        }
    }
}

impl Reach {
    /// Of nobody who is known.
    pub(super) const UNKNOWN: Self = Self::Anywhere { store: None };

    /// Near what texts are looked up.
    pub(super) fn near(&self) -> Option<LatLng> {
        match self {
            Self::Anywhere { store } => *store,
            Self::Circle { center, .. } => Some(*center),
            // A shop may stand outside of where it delivers.
            Self::Zone { name, zones, store } => store
                .filter(|store| zones.contains(name, *store) == Some(true))
                .or_else(|| zones.area(name)?.bounds().middle()),
        }
    }

    /// Says so if the store does not deliver to a point.
    pub(super) fn refusal(&self, point: LatLng) -> Option<String> {
        match self {
            Self::Anywhere { .. } => None,
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
            Self::Zone { name, .. } => (!self.may_hold(point))
                .then(|| format!("is outside of {name:?}, where the store delivers")),
        }
    }

    /// As [`Reach::refusal`], of a text and where it was found.
    pub(super) fn refusal_of(&self, found: &str, point: LatLng) -> Option<String> {
        let refusal = self.refusal(point)?;
        Some(format!("found {found}, which {refusal}"))
    }

    /// Says so if a point is outside, and would not be the other way round.
    pub(super) fn likely_swapped(&self, point: LatLng) -> Option<String> {
        let (latitude, longitude) = (point.latitude(), point.longitude());
        let swapped = LatLng::new(longitude, latitude).ok()?;
        (!self.may_hold(point) && self.may_hold(swapped)).then(|| {
            format!(
                "latitude {latitude} and longitude {longitude} seem swapped: that is far from where \
                 the store delivers, and latitude {longitude}, longitude {latitude} is not"
            )
        })
    }

    fn may_hold(&self, point: LatLng) -> bool {
        let is_within =
            |center: LatLng, meters: u32| center.distance_meters(point) <= f64::from(meters);
        match self {
            Self::Anywhere { store } => store.is_none_or(|store| is_within(store, FAR_METERS)),
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

    fn at(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    fn reaches(store: Option<LatLng>) -> [Reach; 3] {
        [
            Reach::Anywhere { store },
            Reach::Circle {
                center: at(48.85, 2.3),
                radius_meters: 5_000,
            },
            Reach::Zone {
                name: "Centre".to_owned(),
                zones: Zones::parse(ZONES).unwrap(),
                store,
            },
        ]
    }

    #[test]
    fn what_is_outside_says_of_what() {
        let [anywhere, circle, zone] = reaches(Some(at(48.85, 2.3)));

        for reach in [&anywhere, &circle, &zone] {
            assert_eq!(reach.refusal(at(48.86, 2.31)), None);
        }
        let outside = at(48.95, 2.3);
        assert_eq!(anywhere.refusal(outside), None);
        assert_eq!(
            circle.refusal(outside).as_deref(),
            Some("is 11.1 km away: the store delivers within 5 km")
        );
        assert_eq!(
            zone.refusal(outside).as_deref(),
            Some("is outside of \"Centre\", where the store delivers")
        );
    }

    #[test]
    fn a_swapped_pair_is_one_that_is_right_the_other_way_round_alone() {
        for reach in reaches(Some(at(48.85, 2.3))) {
            let told = reach.likely_swapped(at(2.31, 48.86)).unwrap();
            assert!(
                told.ends_with("and latitude 48.86, longitude 2.31 is not"),
                "{told}"
            );
            for point in [at(48.86, 2.31), at(-33.9, 18.4), at(60.0, 100.0)] {
                assert_eq!(reach.likely_swapped(point), None);
            }
        }
        assert_eq!(Reach::UNKNOWN.likely_swapped(at(2.31, 48.86)), None);
    }

    #[test]
    fn texts_are_looked_up_near_the_store_if_that_is_where_it_delivers() {
        let near = |store| reaches(store).map(|reach| reach.near());
        let circle = Some(at(48.85, 2.3));
        let (inside, outside) = (Some(at(48.81, 2.21)), Some(at(50.6, 3.0)));

        assert_eq!(near(inside), [inside, circle, inside]);
        let [anywhere, _, zone] = near(outside);
        assert_eq!(anywhere, outside);
        let middle = zone.unwrap();
        assert!((middle.latitude() - 48.85).abs() < 1e-9, "{middle:?}");
        assert!((middle.longitude() - 2.3).abs() < 1e-9, "{middle:?}");
    }
}
