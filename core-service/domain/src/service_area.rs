//! Where a store delivers.

use super::address::LatLng;

/// As an operator says it.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceArea {
    Circle(Circle),
    /// The zone of this name, wherever that is moved to.
    Zone(String),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circle {
    /// The store's default address if there is none.
    center: Option<LatLng>,
    radius_meters: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} m is no radius; it is from 100 m to 1000 km")]
pub struct InvalidRadius(u32);

const SMALLEST: u32 = 100;
const LARGEST: u32 = 1_000_000;

impl Circle {
    /// So many metres around a point, or around the store's default address.
    pub fn new(center: Option<LatLng>, radius_meters: u32) -> Result<Self, InvalidRadius> {
        if (SMALLEST..=LARGEST).contains(&radius_meters) {
            Ok(Self {
                center,
                radius_meters,
            })
        } else {
            Err(InvalidRadius(radius_meters))
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
    fn a_radius_is_one_that_a_courier_may_ride() {
        assert!(Circle::new(None, 100).is_ok());
        assert!(Circle::new(None, 1_000_000).is_ok());
        for radius in [0, 99, 1_000_001] {
            assert_eq!(Circle::new(None, radius), Err(InvalidRadius(radius)));
        }
    }
}
