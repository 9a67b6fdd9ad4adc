//! An open index: its words are in memory, everything else is in its file.

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use domain::address::LatLng;
use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Params, Row, params};

use super::{dictionary::Dictionary, house_number::HouseNumber, point, schema};
use crate::tokenizer::fold;

pub(super) struct Index {
    pub(super) words: Dictionary,
    pub(super) localities: Dictionary,
    /// ISO 3166-1 alpha-2, without duplicates.
    pub(super) countries: Vec<String>,
    /// All read the same file, even after another file replaces it at its path.
    connections: Vec<Mutex<Connection>>,
    next_connection: AtomicUsize,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot read the address index")]
    Read(#[from] rusqlite::Error),
    #[error("cannot read the address index")]
    File(#[from] std::io::Error),
    #[error("the dictionary of the address index is corrupt")]
    Dictionary(#[from] fst::Error),
    #[error("not an address index of this version: import the addresses again")]
    Version,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Locality {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) country: String,
    pub(super) point: LatLng,
}

/// A street under one of its names.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Street {
    pub(super) id: i64,
    /// The normalized name that matched.
    pub(super) words: String,
    pub(super) name: String,
    pub(super) locality: i64,
    /// The postcode of its first house; empty if unknown.
    pub(super) postcode: String,
    pub(super) point: LatLng,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownHouse {
    pub(super) house: HouseNumber,
    /// Empty if equal to that of the street.
    pub(super) postcode: String,
    pub(super) point: LatLng,
}

/// A place of a street in the full-text index. The first letter of its token is the kind of place.
pub(super) enum PlaceToken<'a> {
    Locality(i64),
    /// Normalized.
    Postcode(&'a str),
    Cell(i64),
    Country(&'a str),
}

impl std::fmt::Display for PlaceToken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Locality(id) => write!(f, "l{id}"),
            Self::Postcode(code) => write!(f, "p{code}"),
            Self::Cell(number) => write!(f, "g{number}"),
            Self::Country(code) => write!(f, "c{}", fold(code)),
        }
    }
}

/// Lower case, without blanks or punctuation.
pub(super) fn normalize_postcode(postcode: &str) -> String {
    fold(postcode)
}

const MAX_CONNECTIONS: usize = 8;
const PRAGMAS: &str =
    "PRAGMA cache_size = -4096; PRAGMA mmap_size = 1073741824; PRAGMA query_only = ON;";

const LOCALITIES: &str =
    "SELECT id, name, country, latitude, longitude FROM localities WHERE key = ?1 LIMIT 50";
const LOCALITY: &str =
    "SELECT id, name, country, latitude, longitude FROM localities WHERE id = ?1";
const LOCALITIES_WITH_POSTCODE: &str = "SELECT locality FROM postcodes WHERE code = ?1 LIMIT 50";
const POSTCODES: &str = "SELECT code FROM postcodes WHERE locality = ?1";
/// Ranked by the column `words` alone: how rare a town or postcode is (column `place`) is irrelevant.
const STREETS: &str =
    "SELECT streets.id, names.words, streets.name, locality, postcode, latitude, longitude
    FROM (SELECT rowid FROM names_index WHERE names_index MATCH ?1
        AND rank MATCH 'bm25(1.0, 0.0)' ORDER BY rank LIMIT ?2) AS found
    JOIN names ON names.id = found.rowid JOIN streets ON streets.id = names.street";
const HOUSE_POSTCODES: &str = "SELECT DISTINCT postcode FROM houses WHERE street = ?1";
const HOUSES: &str = "SELECT number, suffix, postcode, latitude, longitude FROM houses
    WHERE street = ?1 AND number = ?2 ORDER BY suffix";
const LOWER_HOUSE: &str = "SELECT number, suffix, postcode, latitude, longitude FROM houses
    WHERE street = ?1 AND number < ?2 AND (number % 2 = ?2 % 2 OR ?3) ORDER BY number DESC, suffix DESC LIMIT 1";
const UPPER_HOUSE: &str = "SELECT number, suffix, postcode, latitude, longitude FROM houses
    WHERE street = ?1 AND number > ?2 AND (number % 2 = ?2 % 2 OR ?3) ORDER BY number, suffix LIMIT 1";

impl Index {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let count = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MAX_CONNECTIONS);
        let connections: Vec<_> = (0..count)
            .map(|_| connect(path))
            .collect::<Result<_, _>>()?;
        let first = &connections[0];
        let pragma = |name| first.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        if (pragma("application_id")?, pragma("user_version")?)
            != (schema::APPLICATION_ID, schema::VERSION)
        {
            return Err(OpenError::Version);
        }
        let dictionary = |name: &str| -> Result<Dictionary, OpenError> {
            let bytes = first.query_row(
                "SELECT map FROM dictionaries WHERE name = ?1",
                [name],
                |row| row.get(0),
            )?;
            Ok(Dictionary::decode(bytes)?)
        };
        let countries = first
            .prepare("SELECT DISTINCT country FROM localities")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        Ok(Self {
            words: dictionary("words")?,
            localities: dictionary("localities")?,
            countries,
            connections: connections.into_iter().map(Mutex::new).collect(),
            next_connection: AtomicUsize::new(0),
        })
    }

    /// Reserves a connection for a search.
    pub(super) fn lookup(&self) -> Lookup<'_> {
        let next = self.next_connection.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let free = self.connections.iter().find_map(Mutex::try_lock);
        Lookup(free.unwrap_or_else(|| self.connections[next].lock()))
    }
}

fn connect(path: &Path) -> Result<Connection, OpenError> {
    let path = std::path::absolute(path)?
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    // An index file is never modified, only replaced.
    let connection = Connection::open_with_flags(
        format!("file:{path}?mode=ro&immutable=1"),
        OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.set_prepared_statement_cache_capacity(32);
    connection.execute_batch(PRAGMAS)?;
    Ok(connection)
}

/// Reads the index over the connection of one search.
pub(super) struct Lookup<'a>(MutexGuard<'a, Connection>);

impl Lookup<'_> {
    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.0.prepare_cached(sql)?;
        statement.query_map(params, read)?.collect()
    }

    fn first<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        let mut statement = self.0.prepare_cached(sql)?;
        statement.query_row(params, read).optional()
    }

    /// The towns whose normalized name is `key`.
    pub(super) fn localities(&self, key: &str) -> rusqlite::Result<Vec<Locality>> {
        self.all(LOCALITIES, [key], locality)
    }

    pub(super) fn locality(&self, id: i64) -> rusqlite::Result<Option<Locality>> {
        self.first(LOCALITY, [id], locality)
    }

    pub(super) fn localities_with_postcode(&self, postcode: &str) -> rusqlite::Result<Vec<i64>> {
        self.all(LOCALITIES_WITH_POSTCODE, [postcode], |row| row.get(0))
    }

    /// The normalized postcodes of a town.
    pub(super) fn postcodes(&self, locality: i64) -> rusqlite::Result<Vec<String>> {
        self.all(POSTCODES, [locality], |row| row.get(0))
    }

    /// The streets that match a full-text expression, best first.
    pub(super) fn streets(&self, expression: &str, limit: u32) -> rusqlite::Result<Vec<Street>> {
        self.all(STREETS, params![expression, limit], |row| {
            Ok(Street {
                id: row.get(0)?,
                words: row.get(1)?,
                name: row.get(2)?,
                locality: row.get(3)?,
                postcode: row.get(4)?,
                point: lat_lng(row, 5)?,
            })
        })
    }

    /// Whether a house of a street has this normalized postcode. Does not find the street's own
    /// postcode, which its houses do not repeat.
    pub(super) fn has_house_with_postcode(
        &self,
        street: i64,
        code: &str,
    ) -> rusqlite::Result<bool> {
        let postcodes = self.all(HOUSE_POSTCODES, [street], |row| row.get::<_, String>(0))?;
        let mut codes = postcodes
            .iter()
            .map(|postcode| normalize_postcode(postcode));
        Ok(codes.any(|other| other == code))
    }

    pub(super) fn houses(&self, street: i64, number: u32) -> rusqlite::Result<Vec<KnownHouse>> {
        self.all(HOUSES, params![street, number], known_house)
    }

    /// The closest houses below and above a number, on the same side of the street or on any side.
    pub(super) fn neighbours(
        &self,
        street: i64,
        number: u32,
        any_side: bool,
    ) -> rusqlite::Result<Option<(KnownHouse, KnownHouse)>> {
        let neighbour = |sql| self.first(sql, params![street, number, any_side], known_house);
        let Some(lower) = neighbour(LOWER_HOUSE)? else {
            return Ok(None);
        };
        Ok(neighbour(UPPER_HOUSE)?.map(|upper| (lower, upper)))
    }
}

fn locality(row: &Row<'_>) -> rusqlite::Result<Locality> {
    Ok(Locality {
        id: row.get(0)?,
        name: row.get(1)?,
        country: row.get(2)?,
        point: lat_lng(row, 3)?,
    })
}

fn known_house(row: &Row<'_>) -> rusqlite::Result<KnownHouse> {
    Ok(KnownHouse {
        house: HouseNumber {
            number: row.get(0)?,
            suffix: row.get(1)?,
        },
        postcode: row.get(2)?,
        point: lat_lng(row, 3)?,
    })
}

/// Reads the latitude from a column and the longitude from the next one.
fn lat_lng(row: &Row<'_>, column: usize) -> rusqlite::Result<LatLng> {
    let out_of_range = || rusqlite::Error::IntegralValueOutOfRange(column, 0);
    point::from_units(row.get(column)?, row.get(column + 1)?).ok_or_else(out_of_range)
}
