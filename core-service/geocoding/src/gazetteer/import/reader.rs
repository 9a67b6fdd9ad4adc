//! Reads address files: CSV of the French BAN or of `OpenAddresses`, and `GeoJSON` lines of
//! `OpenAddresses`, plain or gzip.

use std::{
    borrow::Cow,
    io::{self, BufRead, BufReader, Read},
};

use domain::address::LatLng;
use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, de::Error as _};
use serde_json::value::RawValue;

use super::{ImportError, ImportStats, SkipReason};
use crate::gazetteer::house_number::HouseNumber;

/// An address that was read from a file.
pub(super) struct FileAddress<'a> {
    pub(super) house: HouseNumber,
    pub(super) street: &'a str,
    pub(super) postcode: &'a str,
    pub(super) town: &'a str,
    pub(super) country: &'a str,
    pub(super) point: LatLng,
}

const BUFFER_BYTES: usize = 256 * 1024;
/// The bytes that are read before the format is decided. The header of a CSV file is shorter.
const START_BYTES: u64 = 4096;
/// Real lines have a few hundred bytes.
const MAX_LINE_BYTES: u64 = 1024 * 1024;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Calls `add` with every address of a file; `add` returns whether the address is new.
pub(super) fn read(
    name: &str,
    file: impl Read,
    country: &str,
    stats: &mut ImportStats,
    add: impl FnMut(FileAddress<'_>) -> rusqlite::Result<bool>,
) -> Result<(), ImportError> {
    let read_error = |source| ImportError::Read {
        name: name.to_owned(),
        line: 1,
        source,
    };
    let mut raw = buffered(file).map_err(read_error)?;
    let start = raw.fill_buf().map_err(read_error)?;
    let mut file: Box<dyn BufRead + '_> = if start.starts_with(&GZIP_MAGIC) {
        Box::new(buffered(MultiGzDecoder::new(raw)).map_err(read_error)?)
    } else {
        Box::new(raw)
    };
    let first = peek_byte(&mut *file).map_err(read_error)?;
    let mut reader = Reader {
        name,
        country,
        stats,
        add,
    };
    match first {
        None => Err(ImportError::Format(format!("{name} is empty"))),
        Some(b'{') => reader.geojson(file),
        Some(_) => reader.csv(file),
    }
}

/// Reads the first [`START_BYTES`] of a file into one buffer, even if they arrive in parts.
fn buffered(mut file: impl Read) -> io::Result<impl BufRead> {
    let mut start = Vec::new();
    file.by_ref().take(START_BYTES).read_to_end(&mut start)?;
    let file = io::Cursor::new(start).chain(file);
    Ok(BufReader::with_capacity(BUFFER_BYTES, file))
}

/// Skips a byte order mark and white space; returns the next byte without consuming it.
fn peek_byte(file: &mut dyn BufRead) -> io::Result<Option<u8>> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    if file.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    loop {
        let buffer = file.fill_buf()?;
        match buffer.first() {
            Some(byte) if byte.is_ascii_whitespace() => file.consume(1),
            byte => return Ok(byte.copied()),
        }
    }
}

struct Reader<'a, Add> {
    name: &'a str,
    country: &'a str,
    stats: &'a mut ImportStats,
    add: Add,
}

/// The columns or properties of an address; empty if absent.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow, deserialize_with = "text")]
    number: Cow<'a, str>,
    #[serde(skip)]
    suffix: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    street: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    postcode: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    city: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    district: Cow<'a, str>,
}

/// Deserializes a string, borrowed if possible; a number becomes its text, null an empty string.
fn text<'de: 'a, 'a, D: serde::Deserializer<'de>>(field: D) -> Result<Cow<'a, str>, D::Error> {
    let field = <&RawValue>::deserialize(field)?.get();
    match field.as_bytes() {
        [b'"', ..] => serde_json::from_str::<&str>(field)
            .map(Cow::Borrowed)
            // A string with escapes.
            .or_else(|_| serde_json::from_str(field).map(Cow::Owned))
            .map_err(D::Error::custom),
        [b'-' | b'0'..=b'9', ..] => Ok(Cow::Borrowed(field)),
        b"null" => Ok(Cow::Borrowed("")),
        _ => Err(D::Error::custom("neither a string nor a number")),
    }
}

/// A line of `GeoJSON`: a point's coordinates are longitude, latitude (RFC 7946 §3.1.1).
#[derive(Deserialize)]
struct Feature<'a> {
    #[serde(borrow, default)]
    properties: Option<Fields<'a>>,
    #[serde(default)]
    geometry: Option<serde_json::Value>,
}

impl Feature<'_> {
    /// Longitude, latitude.
    fn point(&self) -> Option<(f64, f64)> {
        let coordinates = self.geometry.as_ref()?.get("coordinates")?;
        Some((coordinates.get(0)?.as_f64()?, coordinates.get(1)?.as_f64()?))
    }
}

impl<Add: FnMut(FileAddress<'_>) -> rusqlite::Result<bool>> Reader<'_, Add> {
    fn geojson(&mut self, mut file: impl BufRead) -> Result<(), ImportError> {
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let length = (&mut file)
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut text)
                .map_err(|source| self.read_error(line, source))?;
            if length == 0 {
                break;
            }
            // In a whole `FeatureCollection`, the features are separated by commas.
            let trimmed = text.trim_ascii();
            let feature = trimmed.strip_suffix(b",").unwrap_or(trimmed);
            if feature.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Feature<'_>>(feature) {
                Ok(feature) => match &feature.properties {
                    Some(fields) => self.import(line, fields, feature.point())?,
                    None => self.stats.skip(SkipReason::NoAddress, self.name, line),
                },
                Err(_) => self.stats.skip(SkipReason::Invalid, self.name, line),
            }
        }
        Ok(())
    }

    fn csv(&mut self, mut file: impl BufRead) -> Result<(), ImportError> {
        let start = file
            .fill_buf()
            .map_err(|source| self.read_error(1, source))?;
        let mut lines = start.split(|byte| *byte == b'\n');
        let has_semicolon = lines.next().is_some_and(|header| header.contains(&b';'));
        let delimiter = if has_semicolon { b';' } else { b',' };
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(file);
        let headers: csv::StringRecord = reader
            .byte_headers()
            .map_err(|error| self.read_error(1, error.into()))?
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim().to_lowercase())
            .collect();
        let column = |name: &str| headers.iter().position(|header| header == name);
        // The name of a column in `OpenAddresses`, and in the BAN.
        let either = |name, name_in_ban| column(name).or_else(|| column(name_in_ban));
        let required = |name, name_in_ban| {
            let missing = || missing_column(self.name, name);
            either(name, name_in_ban).ok_or_else(missing)
        };
        let longitude = required("lon", "lon")?;
        let latitude = required("lat", "lat")?;
        let street = required("street", "nom_voie")?;
        let number = required("number", "numero")?;
        let suffix = column("rep");
        let postcode = either("postcode", "code_postal");
        let city = either("city", "nom_commune");
        let district = column("district");
        if column("nom_voie").is_some() {
            self.country = "FR";
        }

        let mut record = csv::ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(|error| {
            self.read_error(
                record.position().map_or(1, csv::Position::line),
                error.into(),
            )
        })? {
            let line = record.position().map_or(1, csv::Position::line);
            let text_record = csv::StringRecord::from_byte_record(std::mem::take(&mut record));
            let Ok(text_record) = text_record else {
                self.stats.skip(SkipReason::Invalid, self.name, line);
                continue;
            };
            let text = |column| text_record.get(column).unwrap_or_default();
            let optional = |column: Option<usize>| column.map_or("", text);
            let fields = Fields {
                number: text(number).into(),
                suffix: optional(suffix).into(),
                street: text(street).into(),
                postcode: optional(postcode).into(),
                city: optional(city).into(),
                district: optional(district).into(),
            };
            let coordinate = |column| text(column).trim().parse().ok();
            let point = coordinate(longitude).zip(coordinate(latitude));
            self.import(line, &fields, point)?;
            record = text_record.into_byte_record();
        }
        Ok(())
    }

    /// Imports an address, or counts it as skipped for a reason. The point is longitude, latitude.
    fn import(
        &mut self,
        line: u64,
        fields: &Fields<'_>,
        point: Option<(f64, f64)>,
    ) -> Result<(), ImportError> {
        match parse_address(self.country, fields, point) {
            Ok(address) => {
                if (self.add)(address)? {
                    self.stats.imported += 1;
                } else {
                    self.stats.skip(SkipReason::Duplicate, self.name, line);
                }
            }
            Err(reason) => self.stats.skip(reason, self.name, line),
        }
        Ok(())
    }

    fn read_error(&self, line: u64, source: io::Error) -> ImportError {
        ImportError::Read {
            name: self.name.to_owned(),
            line,
            source,
        }
    }
}

fn missing_column(file: &str, column: &str) -> ImportError {
    ImportError::Format(format!(
        "{file} is neither GeoJSON lines nor CSV with the columns of the French BAN (numero, rep, nom_voie, code_postal, nom_commune, lon, lat) or of OpenAddresses (LON, LAT, NUMBER, STREET, CITY, POSTCODE): the column {column} is missing"
    ))
}

fn parse_address<'a>(
    country: &'a str,
    fields: &'a Fields<'_>,
    point: Option<(f64, f64)>,
) -> Result<FileAddress<'a>, SkipReason> {
    let street = fields.street.trim();
    if street.is_empty() {
        return Err(SkipReason::NoStreet);
    }
    let house =
        HouseNumber::from_data(&fields.number, &fields.suffix).ok_or(SkipReason::NoNumber)?;
    let postcode = fields.postcode.trim();
    let town = [fields.city.trim(), fields.district.trim(), postcode]
        .into_iter()
        .find(|name| !name.is_empty())
        .ok_or(SkipReason::NoTownOrPostcode)?;
    let (longitude, latitude) = point.ok_or(SkipReason::NoPoint)?;
    let point = LatLng::new(latitude, longitude).map_err(|_| SkipReason::PointOutOfRange)?;
    Ok(FileAddress {
        house,
        street,
        postcode,
        town,
        country,
        point,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    /// Otherwise a pipe or a stream of chunks could be read in another format than a file.
    #[test]
    fn a_file_whose_start_arrives_in_parts_is_read_like_a_whole_one() {
        let csv = "\u{feff}lon;lat;street;number;city\n2.35;48.85;Rue de Rivoli;48;Paris\n";
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(csv.as_bytes()).unwrap();
        for file in [csv.as_bytes().to_vec(), encoder.finish().unwrap()] {
            for length in 0..file.len() {
                let (first, rest) = file.split_at(length);
                let mut streets = Vec::new();
                let mut stats = ImportStats::default();
                read("file", first.chain(rest), "FR", &mut stats, |address| {
                    streets.push(address.street.to_owned());
                    Ok(true)
                })
                .unwrap();
                assert_eq!(streets, ["Rue de Rivoli"], "{length}");
            }
        }
    }
}
