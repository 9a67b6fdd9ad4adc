//! Addresses and points.

use serde::{Deserialize, Serialize};

use crate::id::AddressId;

/// Mean radius of the earth (IUGG).
const EARTH_RADIUS_METERS: f64 = 6_371_008.8;

/// The street address of an erased address.
const ERASED: &str = "(erased)";

/// A point on the earth, WGS 84 degrees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Degrees")]
pub struct LatLng {
    latitude: f64,
    longitude: f64,
}

#[derive(Deserialize)]
struct Degrees {
    latitude: f64,
    longitude: f64,
}

impl TryFrom<Degrees> for LatLng {
    type Error = String;

    fn try_from(degrees: Degrees) -> Result<Self, String> {
        Self::new(degrees.latitude, degrees.longitude)
    }
}

impl LatLng {
    /// Fails with the reason if the numbers are not those of a point.
    pub fn new(latitude: f64, longitude: f64) -> Result<Self, String> {
        let is_in_range = |latitude: f64, longitude: f64| {
            (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude)
        };
        if is_in_range(latitude, longitude) {
            Ok(Self {
                latitude,
                longitude,
            })
        } else if is_in_range(longitude, latitude) {
            Err(format!(
                "latitude {latitude} and longitude {longitude} seem swapped: swap them, latitude is from -90 to 90"
            ))
        } else {
            Err(format!(
                "latitude {latitude} and longitude {longitude} are out of range: latitude is from -90 to 90, longitude from -180 to 180"
            ))
        }
    }

    /// Degrees, -90 to 90.
    pub fn latitude(self) -> f64 {
        self.latitude
    }

    /// Degrees, -180 to 180.
    pub fn longitude(self) -> f64 {
        self.longitude
    }

    /// The great-circle distance in metres, by the haversine formula, which unlike the spherical
    /// law of cosines is accurate for close points.
    pub fn distance_meters(self, to: Self) -> f64 {
        let from = self;
        let (from_latitude, to_latitude) = (from.latitude.to_radians(), to.latitude.to_radians());
        let sine_of_half = |degrees: f64| (degrees.to_radians() / 2.0).sin();
        let latitude_part = sine_of_half(to.latitude - from.latitude);
        let longitude_part = sine_of_half(to.longitude - from.longitude);
        let haversine = latitude_part.powi(2)
            + from_latitude.cos() * to_latitude.cos() * longitude_part.powi(2);
        2.0 * EARTH_RADIUS_METERS * haversine.sqrt().min(1.0).asin()
    }
}

/// A postal address with its point. As JSON, it has its stored form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Address {
    pub id: AddressId,
    pub street_address: String,
    #[serde(flatten)]
    pub lat_lng: LatLng,
    /// The name of the place, such as a shop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact_name: Option<String>,
    /// E.164.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telephone: Option<String>,
    /// Free text for the courier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postal_code: Option<String>,
    /// The town.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locality: Option<String>,
    /// ISO 3166-1 alpha-2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
}

impl Address {
    /// The length of all texts in bytes.
    pub fn text_bytes(&self) -> usize {
        let optional = [
            &self.place_name,
            &self.contact_name,
            &self.telephone,
            &self.description,
            &self.postal_code,
            &self.locality,
        ];
        let optional = optional.into_iter().flatten().map(String::len);
        self.street_address.len() + optional.sum::<usize>()
    }

    /// Removes what identifies a person. Keeps the town, the postcode and the country, and the
    /// point to two decimals, about a kilometre.
    pub fn erase(&mut self) {
        let rounded = |degrees: f64| (degrees * 100.0).round() / 100.0;
        ERASED.clone_into(&mut self.street_address);
        self.lat_lng = LatLng {
            latitude: rounded(self.lat_lng.latitude),
            longitude: rounded(self.lat_lng.longitude),
        };
        self.place_name = None;
        self.contact_name = None;
        self.telephone = None;
        self.description = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_out_of_range_is_rejected_with_the_reason() {
        assert!(LatLng::new(-90.0, 180.0).is_ok());
        assert_eq!(
            LatLng::new(151.2, -33.9).unwrap_err(),
            "latitude 151.2 and longitude -33.9 seem swapped: swap them, latitude is from -90 to 90"
        );
        for (latitude, longitude) in [(181.0, 181.0), (f64::NAN, 2.0), (f64::INFINITY, 0.0)] {
            let error = LatLng::new(latitude, longitude).unwrap_err();
            assert!(error.contains(" are out of range: "), "{error}");
        }
    }

    fn point(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    #[test]
    fn known_distances_are_computed() {
        let (louvre, nation) = (point(48.8606, 2.3376), point(48.8484, 2.3959));
        for (from, to, expected) in [
            (louvre, louvre, 0.0),
            (louvre, nation, 4_476.0),
            (nation, louvre, 4_476.0),
            (point(48.8566, 2.3522), point(51.5074, -0.1278), 343_557.0),
            (point(0.0, 179.5), point(0.0, -179.5), 111_195.0),
            (point(90.0, 0.0), point(-90.0, 0.0), 20_015_115.0),
            (point(0.0, 0.0), point(0.0, 180.0), 20_015_115.0),
        ] {
            let meters = from.distance_meters(to);
            assert!(
                (meters - expected).abs() < 1.0 + expected * 1e-4,
                "{meters} is not {expected}"
            );
        }
    }
}
