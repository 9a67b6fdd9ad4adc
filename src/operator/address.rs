//! An address on the command line.

use clap::Args;
use proto::{AddressDraft, LatLng};

#[derive(Args, Debug)]
pub(crate) struct AddressFlags {
    /// Where deliveries are picked up unless they say otherwise: a postal address
    #[arg(long, value_name = "TEXT")]
    address: Option<String>,

    /// The address's point, used as it is, e.g. 48.8554,2.3596; without it the text is looked up
    #[arg(long, value_name = "LAT,LNG", value_parser = lat_lng, allow_hyphen_values = true)]
    lat_lng: Option<LatLng>,
}

impl AddressFlags {
    /// The address, if there is anything of one.
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

fn lat_lng(text: &str) -> Result<LatLng, String> {
    let parse = |number: &str| number.trim().parse::<f64>().ok();
    text.split_once(',')
        .and_then(|(latitude, longitude)| Some((parse(latitude)?, parse(longitude)?)))
        .map(|(latitude, longitude)| LatLng {
            latitude,
            longitude,
        })
        .ok_or_else(|| "give latitude and longitude in degrees, e.g. 48.8554,2.3596".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_two_numbers_latitude_first() {
        let read = |text| lat_lng(text).map(|point| (point.latitude, point.longitude));

        assert_eq!(read("48.8554,2.3596"), Ok((48.8554, 2.3596)));
        assert_eq!(read("-33.9, 151.2"), Ok((-33.9, 151.2)));
        for wrong in ["", "48.8554", "48.8554;2.3596", "a,b", "1,2,3"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
