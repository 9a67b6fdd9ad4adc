//! Locations, and the flags for a store's default address.

use clap::Args;
use proto::{AddressDraft, LatLng};

#[derive(Args, Debug)]
pub(crate) struct AddressFlags {
    /// Default pickup address, e.g. '45 Rue d’Ulm, Paris'
    #[arg(long, value_name = "TEXT")]
    address: Option<String>,

    /// Location of the address, e.g. 48.8554,2.3596; by default, the address is geocoded
    #[arg(long, value_name = "LAT,LNG", value_parser = parse_lat_lng, allow_hyphen_values = true)]
    lat_lng: Option<LatLng>,
}

impl AddressFlags {
    /// Converts the flags to an address; none if neither flag is set.
    pub(crate) fn draft(self) -> Option<AddressDraft> {
        if self.address.is_none() && self.lat_lng.is_none() {
            return None;
        }
        Some(AddressDraft {
            street_address: self.address,
            lat_lng: self.lat_lng,
            ..AddressDraft::default()
        })
    }
}

/// A location as `--lat-lng` takes it.
pub(crate) fn located(at: LatLng) -> String {
    format!("{},{}", at.latitude, at.longitude)
}

pub(crate) fn parse_lat_lng(text: &str) -> Result<LatLng, String> {
    let parse = |number: &str| number.trim().parse::<f64>().ok();
    text.split_once(',')
        .and_then(|(latitude, longitude)| Some((parse(latitude)?, parse(longitude)?)))
        .map(|(latitude, longitude)| LatLng {
            latitude,
            longitude,
        })
        .ok_or_else(|| "must be latitude and longitude in degrees, e.g. 48.8554,2.3596".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_two_numbers_latitude_first() {
        let read = |text| parse_lat_lng(text).map(|point| (point.latitude, point.longitude));

        assert_eq!(read("48.8554,2.3596"), Ok((48.8554, 2.3596)));
        assert_eq!(read("-33.9, 151.2"), Ok((-33.9, 151.2)));
        for wrong in ["", "48.8554", "48.8554;2.3596", "a,b", "1,2,3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
