//! An index of addresses held in memory.

mod house;
mod search;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Read,
};

use futures_util::{FutureExt, future::BoxFuture};
use serde::Deserialize;

use super::{
    Answer, Error, Geocoder, Precision, Query,
    words::{FRENCH, Language},
};
use crate::domain::address::{LatLng, LatLngError};
use house::House;

/// Addresses of one country, searched as people write them.
pub struct Gazetteer {
    language: &'static Language,
    /// ISO 3166-1 alpha-2.
    country: &'static str,
    streets: Vec<Street>,
    /// Words of a name → places in `streets`, one for each town that has such a street.
    streets_by_name: HashMap<String, Vec<usize>>,
    localities: Vec<Locality>,
    localities_by_name: HashMap<String, usize>,
}

#[derive(Debug, thiserror::Error)]
pub enum GazetteerError {
    #[error("the addresses can't be read")]
    Read(#[from] csv::Error),
    #[error("address {row} has no place on the map")]
    Point { row: usize, source: LatLngError },
}

struct Street {
    name: String,
    locality: usize,
    houses: BTreeMap<House, Place>,
}
#[derive(Clone)]
struct Place {
    postal_code: String,
    lat_lng: LatLng,
}

struct Locality {
    name: String,
    postal_codes: BTreeSet<String>,
    lat_lng: LatLng,
}

/// A line of the French national address base (BAN); its other columns are not needed.
#[derive(Deserialize)]
struct Row {
    numero: u32,
    rep: String,
    nom_voie: String,
    code_postal: String,
    nom_commune: String,
    lon: f64,
    lat: f64,
}
impl Gazetteer {
    /// Well-known addresses of Paris, to try the platform with.
    pub fn embedded() -> Result<Self, GazetteerError> {
        Self::from_ban(include_bytes!("../paris.csv").as_slice())
    }

    /// Reads addresses in the format of the French national address base: CSV with `;` and a
    /// header.
    pub fn from_ban(csv: impl Read) -> Result<Self, GazetteerError> {
        let mut gazetteer = Self {
            language: &FRENCH,
            country: "FR",
            streets: Vec::new(),
            streets_by_name: HashMap::new(),
            localities: Vec::new(),
            localities_by_name: HashMap::new(),
        };
        let mut reader = csv::ReaderBuilder::new().delimiter(b';').from_reader(csv);
        for (index, row) in reader.deserialize().enumerate() {
            let row: Row = row?;
            let lat_lng =
                LatLng::new(row.lat, row.lon).map_err(|source| GazetteerError::Point {
                    row: index + 1,
                    source,
                })?;
            gazetteer.add(row, lat_lng);
        }
        Ok(gazetteer)
    }

    fn add(&mut self, row: Row, lat_lng: LatLng) {
        let locality = *self
            .localities_by_name
            .entry(self.language.words(&row.nom_commune).join(" "))
            .or_insert_with(|| {
                self.localities.push(Locality {
                    name: row.nom_commune,
                    postal_codes: BTreeSet::new(),
                    lat_lng,
                });
                self.localities.len() - 1
            });
        self.localities[locality]
            .postal_codes
            .insert(row.code_postal.clone());

        let street = self.street(row.nom_voie, locality);
        self.streets[street].houses.insert(
            House {
                number: row.numero,
                suffix: row.rep.to_lowercase(),
            },
            Place {
                postal_code: row.code_postal,
                lat_lng,
            },
        );
    }

    /// The street of a name in a town, made if it is new.
    fn street(&mut self, name: String, locality: usize) -> usize {
        let words = self.language.words(&name).join(" ");
        let same_name = self.streets_by_name.entry(words.clone()).or_default();
        if let Some(known) = same_name
            .iter()
            .find(|street| self.streets[**street].locality == locality)
        {
            return *known;
        }
        let street = self.streets.len();
        same_name.push(street);
        // `Parvis Notre-Dame - Place Jean-Paul II` is called by its first name.
        if let Some((first, _)) = name.split_once(" - ") {
            let words = self.language.words(first).join(" ");
            self.streets_by_name.entry(words).or_default().push(street);
        }
        self.streets.push(Street {
            name,
            locality,
            houses: BTreeMap::new(),
        });
        street
    }
}

impl Geocoder for Gazetteer {
    fn geocode<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Answer, Error>> {
        std::future::ready(Ok(self.search(query))).boxed()
    }
}

impl Street {
    /// A house of this street; one that differs in its suffix alone stands beside it.
    fn house<'a>(&'a self, house: &'a House) -> Option<(&'a House, &'a Place, Precision)> {
        if let Some(place) = self.houses.get(house) {
            return Some((house, place, Precision::House));
        }
        let (_, place) = self
            .houses
            .iter()
            .find(|(known, _)| known.number == house.number)?;
        Some((house, place, Precision::Interpolated))
    }
}
