//! The file that addresses are kept in.

use rusqlite::Connection;

/// Raised with every change of the schema or of how names are made comparable: an index of
/// another form must be imported anew.
pub(super) const FORM: i64 = 1;
/// `DADR`, so that no other file is taken for one of ours.
pub(super) const APPLICATION: i64 = 0x4441_4452;

/// Points are ten-millionths of degrees.
const TABLES: &str = "
CREATE TABLE localities (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, name TEXT NOT NULL, country TEXT NOT NULL,
    latitude INTEGER NOT NULL DEFAULT 0, longitude INTEGER NOT NULL DEFAULT 0);
-- A code is written small and without blanks.
CREATE TABLE postcodes (
    code TEXT NOT NULL, locality INTEGER NOT NULL, PRIMARY KEY (code, locality)) WITHOUT ROWID;
-- The postcode is that of most of its houses; the point is a house's in its middle.
CREATE TABLE streets (
    id INTEGER PRIMARY KEY, locality INTEGER NOT NULL, name TEXT NOT NULL, postcode TEXT NOT NULL,
    latitude INTEGER NOT NULL DEFAULT 0, longitude INTEGER NOT NULL DEFAULT 0);
-- A street may be called by several names.
CREATE TABLE names (id INTEGER PRIMARY KEY, street INTEGER NOT NULL, words TEXT NOT NULL);
-- Of a house whose postcode is the street's, it is empty.
CREATE TABLE houses (
    street INTEGER NOT NULL, number INTEGER NOT NULL, suffix TEXT NOT NULL, postcode TEXT NOT NULL,
    latitude INTEGER NOT NULL, longitude INTEGER NOT NULL,
    PRIMARY KEY (street, number, suffix, postcode)) WITHOUT ROWID;
-- By a name's words, and by where it is: l and the locality, p and a postcode, g and a cell of
-- the map, c and the country.
CREATE VIRTUAL TABLE names_index USING fts5 (words, place, content='');
-- All words of streets and all keys of localities, as finite state transducers.
CREATE TABLE dictionaries (name TEXT PRIMARY KEY, map BLOB NOT NULL) WITHOUT ROWID;
";

/// Made once all addresses are there.
const INDEXES: &str = "
CREATE INDEX localities_by_key ON localities (key);
CREATE INDEX postcodes_by_locality ON postcodes (locality);
INSERT INTO names_index (names_index) VALUES ('optimize');
";

pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    // Until it is whole, nobody but the import sees the file.
    connection.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;",
    )?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", FORM)?;
    connection.execute_batch(TABLES)
}

pub(super) fn create_indexes(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(INDEXES)
}
