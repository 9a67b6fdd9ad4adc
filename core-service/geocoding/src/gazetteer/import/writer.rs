//! Writes a new index, address by address.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    path::Path,
};

use rusqlite::{Connection, params};

use super::{ImportError, reader::FileAddress};
use crate::{
    gazetteer::{
        dictionary::Dictionary,
        index::{PlaceToken, normalize_postcode},
        point, schema,
    },
    tokenizer::{self, Country},
};

/// An unfinished index.
pub(super) struct Writer {
    connection: Connection,
    /// Ids of localities by country and normalized name.
    localities: HashMap<(String, String), i64>,
    /// Streets by locality and normalized name.
    streets: HashMap<(i64, String), Street>,
    /// The country, the town and the street of the last address, as in the data, and that street.
    last: Option<([String; 3], Street)>,
}

#[derive(Clone)]
struct Street {
    id: i64,
    /// The postcode of its first house.
    postcode: String,
}

const INSERT_HOUSE: &str = "INSERT OR IGNORE INTO houses VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const INSERT_LOCALITY: &str =
    "INSERT INTO localities (id, key, name, country) VALUES (?1, ?2, ?3, ?4)";
const INSERT_STREET: &str =
    "INSERT INTO streets (id, locality, name, postcode) VALUES (?1, ?2, ?3, ?4)";
const INSERT_NAME: &str = "INSERT INTO names (id, street, words) VALUES (?1, ?2, ?3)";
const INSERT_INDEXED_NAME: &str =
    "INSERT INTO names_index (rowid, words, place) VALUES (?1, ?2, ?3)";
const INSERT_POSTCODE: &str = "INSERT OR IGNORE INTO postcodes VALUES (?1, ?2)";
const INSERT_DICTIONARY: &str = "INSERT INTO dictionaries VALUES (?1, ?2)";
const STREETS: &str = "SELECT streets.id, locality, streets.name, postcode, country FROM streets
    JOIN localities ON localities.id = locality ORDER BY streets.id";
const MIDDLE_HOUSE: &str =
    "SELECT latitude, longitude FROM houses WHERE street = ?1 ORDER BY number
    LIMIT 1 OFFSET (SELECT count(*) / 2 FROM houses WHERE street = ?1)";
const POSTCODES: &str = "SELECT DISTINCT postcode FROM houses WHERE street = ?1 AND postcode <> ''";
const SET_STREET_POINT: &str = "UPDATE streets SET latitude = ?2, longitude = ?3 WHERE id = ?1";
const SET_LOCALITY_POINTS: &str = "UPDATE localities SET (latitude, longitude) =
    (SELECT CAST(avg(latitude) AS INTEGER), CAST(avg(longitude) AS INTEGER) FROM streets WHERE locality = localities.id)";

impl Writer {
    pub(super) fn create(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(32);
        schema::create(&connection)?;
        connection.execute_batch("BEGIN")?;
        Ok(Self {
            connection,
            localities: HashMap::new(),
            streets: HashMap::new(),
            last: None,
        })
    }

    /// Adds an address; returns false for a duplicate.
    pub(super) fn add(&mut self, address: &FileAddress<'_>) -> rusqlite::Result<bool> {
        let street = self.street(address)?;
        let (latitude, longitude) = point::to_units(address.point);
        let postcode = if street.postcode == address.postcode {
            ""
        } else {
            address.postcode
        };
        let house = &address.house;
        let mut insert = self.connection.prepare_cached(INSERT_HOUSE)?;
        let added = insert.execute(params![
            street.id,
            house.number,
            house.suffix,
            postcode,
            latitude,
            longitude
        ])?;
        Ok(added == 1)
    }

    fn street(&mut self, address: &FileAddress<'_>) -> rusqlite::Result<Street> {
        // Normalization is slow, and consecutive addresses are mostly in the same street.
        let names = [address.country, address.town, address.street];
        if let Some((last_names, street)) = &self.last
            && *last_names == names
        {
            return Ok(street.clone());
        }
        let country = Country::of(address.country);
        let locality = self.locality(address, country)?;
        let street = self.insert_street(address, locality, country)?;
        self.last = Some((names.map(str::to_owned), street.clone()));
        Ok(street)
    }

    fn locality(&mut self, address: &FileAddress<'_>, country: &Country) -> rusqlite::Result<i64> {
        let name = Country::town_without_district(address.town);
        let key = tokenizer::key(name, country);
        let next_id = as_id(self.localities.len());
        let name_in_country = (address.country.to_owned(), key.clone());
        let entry = match self.localities.entry(name_in_country) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(entry) => entry,
        };
        self.connection
            .prepare_cached(INSERT_LOCALITY)?
            .execute(params![next_id, key, name, address.country])?;
        Ok(*entry.insert(next_id))
    }

    fn insert_street(
        &mut self,
        address: &FileAddress<'_>,
        locality: i64,
        country: &Country,
    ) -> rusqlite::Result<Street> {
        let key = tokenizer::key(address.street, country);
        let next_id = as_id(self.streets.len());
        let entry = match self.streets.entry((locality, key)) {
            Entry::Occupied(known) => return Ok(known.get().clone()),
            Entry::Vacant(entry) => entry,
        };
        self.connection
            .prepare_cached(INSERT_STREET)?
            .execute(params![next_id, locality, address.street, address.postcode])?;
        let street = Street {
            id: next_id,
            postcode: address.postcode.to_owned(),
        };
        Ok(entry.insert(street).clone())
    }

    /// Builds the search structures and closes the file.
    pub(super) fn finish(self) -> Result<(), ImportError> {
        let connection = self.connection;
        let words = index_names(&connection)?;
        connection.execute(SET_LOCALITY_POINTS, [])?;
        let mut localities = BTreeMap::<String, u64>::new();
        for (_, key) in self.localities.into_keys() {
            *localities.entry(key).or_default() += 1;
        }
        let mut insert = connection.prepare(INSERT_DICTIONARY)?;
        insert.execute(params!["words", Dictionary::encode(&words)?])?;
        insert.execute(params!["localities", Dictionary::encode(&localities)?])?;
        drop(insert);
        schema::create_indexes(&connection)?;
        connection.execute_batch("COMMIT")?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}

/// Indexes the names and postcodes of all streets and sets their points; returns the frequency of each
/// word.
fn index_names(connection: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut streets = connection.prepare(STREETS)?;
    let mut middle_house = connection.prepare(MIDDLE_HOUSE)?;
    let mut postcodes = connection.prepare(POSTCODES)?;
    let mut set_point = connection.prepare(SET_STREET_POINT)?;
    let mut insert_postcode = connection.prepare(INSERT_POSTCODE)?;
    let mut insert_name = connection.prepare(INSERT_NAME)?;
    let mut insert_indexed_name = connection.prepare(INSERT_INDEXED_NAME)?;
    let mut words = BTreeMap::<String, u64>::new();
    let mut name_id = 0_i64;
    let mut rows = streets.query([])?;
    while let Some(row) = rows.next()? {
        let (id, locality): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (name, postcode, country): (String, String, String) =
            (row.get(2)?, row.get(3)?, row.get(4)?);
        let (latitude, longitude) =
            middle_house.query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        set_point.execute(params![id, latitude, longitude])?;

        let mut place = vec![
            PlaceToken::Locality(locality).to_string(),
            PlaceToken::Country(&country).to_string(),
        ];
        let point = point::from_units(latitude, longitude);
        place.extend(point.map(|point| PlaceToken::Cell(point::cell(point)).to_string()));
        let other_postcodes = postcodes.query_map([id], |row| row.get::<_, String>(0))?;
        for postcode in std::iter::once(Ok(postcode)).chain(other_postcodes) {
            let code = normalize_postcode(&postcode?);
            if !code.is_empty() {
                insert_postcode.execute(params![code, locality])?;
                place.push(PlaceToken::Postcode(&code).to_string());
            }
        }
        let place = place.join(" ");
        // `Parvis Notre-Dame - Place Jean-Paul II` is also known by its first part.
        let short = name.split_once(" - ").map(|(first, _)| first);
        let country = Country::of(&country);
        for name in [Some(name.as_str()), short].into_iter().flatten() {
            let key = tokenizer::key(name, country);
            insert_name.execute(params![name_id, id, key])?;
            insert_indexed_name.execute(params![name_id, key, place])?;
            name_id += 1;
            for word in key.split(' ') {
                *words.entry(word.to_owned()).or_default() += 1;
            }
        }
    }
    words.remove("");
    Ok(words)
}

/// Ids are assigned in the order of appearance.
fn as_id(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
