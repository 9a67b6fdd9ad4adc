//! The APIs of geocoders that are supported.

use clap::ValueEnum;

/// The API of a geocoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum)]
pub enum Protocol {
    Nominatim,
    Photon,
    /// Also the API of the French address database (BAN).
    Addok,
    Pelias,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nominatim => "nominatim",
            Self::Photon => "photon",
            Self::Addok => "addok",
            Self::Pelias => "pelias",
        }
    }
}
