//! An index in force: its words in memory, everything else in its file.

use std::{
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use domain::address::LatLng;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};

use super::{dictionary::Dictionary, house::House, point, schema};

/// A file of addresses, opened.
pub(super) struct Index {
    pub(super) words: Dictionary,
    pub(super) localities: Dictionary,
    /// ISO 3166-1 alpha-2, each once.
    pub(super) countries: Vec<String>,
    /// A few, all of them on the same file, whatever its name is given to later.
    connections: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the index of addresses cannot be read")]
    Read(#[from] rusqlite::Error),
    #[error("the index of addresses cannot be read")]
    File(#[from] std::io::Error),
    #[error("the index's words are damaged")]
    Dictionary(#[from] fst::Error),
    #[error("is no index of addresses, or of another version: import the addresses anew")]
    Form,
}

/// A town.
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
    /// The words of the name that it was found by, joined.
    pub(super) words: String,
    pub(super) name: String,
    pub(super) locality: i64,
    /// That of its first house; empty if none is known.
    pub(super) postcode: String,
    pub(super) point: LatLng,
}

/// A house of a street.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) house: House,
    /// Empty where it is the street's.
    pub(super) postcode: String,
    pub(super) point: LatLng,
}

const MOST_CONNECTIONS: usize = 8;
const PRAGMAS: &str =
    "PRAGMA cache_size = -4096; PRAGMA mmap_size = 1073741824; PRAGMA query_only = ON;";

const LOCALITIES: &str =
    "SELECT id, name, country, latitude, longitude FROM localities WHERE key = ?1 LIMIT 50";
const LOCALITY: &str =
    "SELECT id, name, country, latitude, longitude FROM localities WHERE id = ?1";
const AT_POSTCODE: &str = "SELECT locality FROM postcodes WHERE code = ?1 LIMIT 50";
const POSTCODES: &str = "SELECT code FROM postcodes WHERE locality = ?1";
/// Ranked by the words alone: a rare place is not a better one.
const STREETS: &str =
    "SELECT streets.id, names.words, streets.name, locality, postcode, latitude, longitude
    FROM (SELECT rowid FROM names_index WHERE names_index MATCH ?1
        AND rank MATCH 'bm25(1.0, 0.0)' ORDER BY rank LIMIT ?2) AS found
    JOIN names ON names.id = found.rowid JOIN streets ON streets.id = names.street";
const HAS_POSTCODE: &str =
    "SELECT 1 FROM houses WHERE street = ?1 AND replace(lower(postcode), ' ', '') = ?2 LIMIT 1";
const HOUSES: &str = "SELECT number, suffix, postcode, latitude, longitude FROM houses
    WHERE street = ?1 AND number = ?2 ORDER BY suffix";
const LOWER: &str = "SELECT number, suffix, postcode, latitude, longitude FROM houses
    WHERE street = ?1 AND number < ?2 AND (number % 2 = ?2 % 2 OR ?3) ORDER BY number DESC, suffix DESC LIMIT 1";
const UPPER: &str = "SELECT number, suffix, postcode, latitude, longitude FROM houses
    WHERE street = ?1 AND number > ?2 AND (number % 2 = ?2 % 2 OR ?3) ORDER BY number, suffix LIMIT 1";

impl Index {
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let count = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_CONNECTIONS);
        let connections: Vec<_> = (0..count)
            .map(|_| connect(path))
            .collect::<Result<_, _>>()?;
        let first = &connections[0];
        let pragma = |name| first.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        if (pragma("application_id")?, pragma("user_version")?)
            != (schema::APPLICATION, schema::FORM)
        {
            return Err(OpenError::Form);
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
            next: AtomicUsize::new(0),
        })
    }

    /// One of its connections, for a search.
    pub(super) fn lookup(&self) -> Lookup<'_> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let free = self
            .connections
            .iter()
            .find_map(|connection| connection.try_lock().ok());
        // A search that panicked has changed nothing.
        Lookup(free.unwrap_or_else(|| {
            self.connections[next]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        }))
    }
}

fn connect(path: &Path) -> Result<Connection, OpenError> {
    let path = std::path::absolute(path)?;
    let path = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    // A file in force is never changed, only replaced.
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

/// What a search asks of the file.
pub(super) struct Lookup<'a>(MutexGuard<'a, Connection>);

impl Lookup<'_> {
    pub(super) fn localities(&self, key: &str) -> rusqlite::Result<Vec<Locality>> {
        let mut statement = self.0.prepare_cached(LOCALITIES)?;
        statement.query_map([key], locality)?.collect()
    }

    pub(super) fn locality(&self, id: i64) -> rusqlite::Result<Option<Locality>> {
        let mut statement = self.0.prepare_cached(LOCALITY)?;
        statement.query_row([id], locality).optional()
    }

    /// The towns that have a postcode.
    pub(super) fn localities_at(&self, postcode: &str) -> rusqlite::Result<Vec<i64>> {
        let mut statement = self.0.prepare_cached(AT_POSTCODE)?;
        statement.query_map([postcode], |row| row.get(0))?.collect()
    }

    /// The postcodes of a town, for comparing.
    pub(super) fn postcodes(&self, locality: i64) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.0.prepare_cached(POSTCODES)?;
        statement.query_map([locality], |row| row.get(0))?.collect()
    }

    /// The streets that match an expression of the full-text index, the best first.
    pub(super) fn streets(&self, expression: &str, limit: u32) -> rusqlite::Result<Vec<Street>> {
        let mut statement = self.0.prepare_cached(STREETS)?;
        let rows = statement.query_map(params![expression, limit], |row| {
            Ok(Street {
                id: row.get(0)?,
                words: row.get(1)?,
                name: row.get(2)?,
                locality: row.get(3)?,
                postcode: row.get(4)?,
                point: lat_lng(row, 5)?,
            })
        })?;
        rows.collect()
    }

    /// Has a street houses of a postcode that is not its usual one?
    pub(super) fn has_postcode(&self, street: i64, code: &str) -> rusqlite::Result<bool> {
        let mut statement = self.0.prepare_cached(HAS_POSTCODE)?;
        statement.exists(params![street, code])
    }

    /// The houses of a number.
    pub(super) fn houses(&self, street: i64, number: u32) -> rusqlite::Result<Vec<Known>> {
        let mut statement = self.0.prepare_cached(HOUSES)?;
        statement
            .query_map(params![street, number], known)?
            .collect()
    }

    /// The next house before and after a number, on the same side of the street or on any.
    pub(super) fn neighbours(
        &self,
        street: i64,
        number: u32,
        any_side: bool,
    ) -> rusqlite::Result<Option<(Known, Known)>> {
        let next = |sql| -> rusqlite::Result<Option<Known>> {
            let mut statement = self.0.prepare_cached(sql)?;
            statement
                .query_row(params![street, number, any_side], known)
                .optional()
        };
        Ok(match next(LOWER)? {
            Some(lower) => next(UPPER)?.map(|upper| (lower, upper)),
            None => None,
        })
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

fn known(row: &Row<'_>) -> rusqlite::Result<Known> {
    Ok(Known {
        house: House {
            number: row.get(0)?,
            suffix: row.get(1)?,
        },
        postcode: row.get(2)?,
        point: lat_lng(row, 3)?,
    })
}

/// The latitude is in a column, the longitude in the next.
fn lat_lng(row: &Row<'_>, column: usize) -> rusqlite::Result<LatLng> {
    let off_earth = || rusqlite::Error::IntegralValueOutOfRange(column, 0);
    point::from_units(row.get(column)?, row.get(column + 1)?).ok_or_else(off_earth)
}
