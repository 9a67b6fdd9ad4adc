//! The schema of the index file.

use rusqlite::Connection;

/// Incremented with every change of the schema or of name normalization; an index of another
/// version must be imported again.
pub(super) const VERSION: i64 = 1;
/// `DADR`; identifies the file type.
pub(super) const APPLICATION_ID: i64 = 0x4441_4452;

/// Latitudes and longitudes are in ten-millionths of a degree.
const TABLES: &str = "
CREATE TABLE localities (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL, country TEXT NOT NULL,
    latitude INTEGER NOT NULL DEFAULT 0, longitude INTEGER NOT NULL DEFAULT 0);
-- A code is in lower case without blanks and punctuation.
CREATE TABLE postcodes (
    code TEXT NOT NULL, locality INTEGER NOT NULL, PRIMARY KEY (code, locality)) WITHOUT ROWID;
-- The postcode is that of its first house; the point is that of its middle house.
CREATE TABLE streets (
    id INTEGER PRIMARY KEY, locality INTEGER NOT NULL, name TEXT NOT NULL, postcode TEXT NOT NULL,
    latitude INTEGER NOT NULL DEFAULT 0, longitude INTEGER NOT NULL DEFAULT 0);
-- A street may have several names.
CREATE TABLE names (id INTEGER PRIMARY KEY, street INTEGER NOT NULL, words TEXT NOT NULL);
-- The postcode is empty if equal to that of the street.
CREATE TABLE houses (
    street INTEGER NOT NULL, number INTEGER NOT NULL, suffix TEXT NOT NULL, postcode TEXT NOT NULL,
    latitude INTEGER NOT NULL, longitude INTEGER NOT NULL,
    PRIMARY KEY (street, number, suffix, postcode)) WITHOUT ROWID;
-- Indexes the words of a name and its places: l and the locality, p and a postcode, g and a map
-- cell, c and the country.
CREATE VIRTUAL TABLE names_index USING fts5 (words, place, content='');
-- All words of streets and all keys of localities, as finite state transducers.
CREATE TABLE dictionaries (name TEXT PRIMARY KEY, map BLOB NOT NULL) WITHOUT ROWID;
";

/// Created after all addresses are inserted.
const INDEXES: &str = "
CREATE INDEX localities_by_key ON localities (key);
CREATE INDEX postcodes_by_locality ON postcodes (locality);
INSERT INTO names_index (names_index) VALUES ('optimize');
";

pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    // An incomplete file is never read, so it needs no journal.
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;",
    )?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    connection.execute_batch(TABLES)
}

pub(super) fn create_indexes(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(INDEXES)
}
