//! Where a store delivers.

use super::address::LatLng;

/// A store's service area, as configured by an operator.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceArea {
    Circle(Circle),
    /// A zone by name; follows later changes of the zone.
    Zone(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circle {
    /// The store's default address if absent.
    center: Option<LatLng>,
    radius_meters: u32,
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

#[cfg(test)]
mod tests {
    use super::*;

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
