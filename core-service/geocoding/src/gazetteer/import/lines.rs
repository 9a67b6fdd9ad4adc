//! Reading the formats: CSV as the French BAN or `OpenAddresses` writes it, and `OpenAddresses`'
//! lines of `GeoJSON`. Either may be gzip.

use std::{
    borrow::Cow,
    io::{self, BufRead, BufReader, Read},
};

use domain::address::LatLng;
use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use super::{ImportError, Tally, Why};

use crate::gazetteer::house::House;

/// Why a file is none of these.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    #[error("is empty")]
    Empty,
    #[error(
        "is neither GeoJSON lines nor CSV with the columns of the BAN (numero, rep, nom_voie, code_postal, nom_commune, lon, lat) or of OpenAddresses (LON, LAT, NUMBER, STREET, CITY, POSTCODE): there is no {0}"
    )]
    Columns(&'static str),
}

/// An address of a file.
pub(super) struct Listed<'a> {
    pub(super) house: House,
    pub(super) street: &'a str,
    pub(super) postcode: &'a str,
    pub(super) town: &'a str,
    pub(super) country: &'a str,
    pub(super) point: LatLng,
}

const BUFFER: usize = 256 * 1024;
/// A line of addresses has a few hundred bytes.
const LONGEST_LINE: u64 = 1024 * 1024;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Gives every address of a file to `add`, which says whether it is new.
pub(super) fn read(
    name: &str,
    file: impl Read,
    country: &str,
    tally: &mut Tally,
    add: impl FnMut(Listed<'_>) -> rusqlite::Result<bool>,
) -> Result<(), ImportError> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    let unreadable = |source| ImportError::Read {
        name: name.to_owned(),
        line: 1,
        source,
    };
    let is_gzip = file.fill_buf().map_err(unreadable)?.starts_with(&GZIP);
    let mut file: Box<dyn BufRead + '_> = if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    };
    let first = first_byte(&mut *file).map_err(unreadable)?;
    let mut reading = Reading {
        name,
        country,
        tally,
        add,
    };
    match first {
        None => Err(reading.wrong(FormatError::Empty)),
        Some(b'{') => reading.geojson(file),
        Some(_) => reading.csv(file),
    }
}

/// The first byte that is no blank, with all before it taken away.
fn first_byte(file: &mut dyn BufRead) -> io::Result<Option<u8>> {
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

struct Reading<'a, Add> {
    name: &'a str,
    country: &'a str,
    tally: &'a mut Tally,
    add: Add,
}

/// The columns or properties of an address; absent ones are empty.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow, alias = "numero", deserialize_with = "text")]
    number: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    rep: Cow<'a, str>,
    #[serde(borrow, alias = "nom_voie", deserialize_with = "text")]
    street: Cow<'a, str>,
    #[serde(borrow, alias = "code_postal", deserialize_with = "text")]
    postcode: Cow<'a, str>,
    #[serde(borrow, alias = "nom_commune", deserialize_with = "text")]
    city: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    district: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    lon: Cow<'a, str>,
    #[serde(borrow, deserialize_with = "text")]
    lat: Cow<'a, str>,
}

/// A text, borrowed where it can be; null and anything but a text is empty, a number its text.
fn text<'de: 'a, 'a, D: serde::Deserializer<'de>>(field: D) -> Result<Cow<'a, str>, D::Error> {
    struct Text;
    impl<'de> serde::de::Visitor<'de> for Text {
        type Value = Cow<'de, str>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a text or a number")
        }
        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(text))
        }
        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Cow::Owned(text.to_owned()))
        }
        fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
            Ok(Cow::Owned(number.to_string()))
        }
        fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
            Ok(Cow::Owned(number.to_string()))
        }
        fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
            Ok(Cow::Owned(number.to_string()))
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(""))
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(""))
        }
    }
    field.deserialize_any(Text)
}

/// A line of `GeoJSON`: a point's coordinates are longitude, latitude (RFC 7946 §3.1.1).
#[derive(Deserialize)]
struct Feature<'a> {
    #[serde(borrow, default)]
    properties: Option<Fields<'a>>,
    #[serde(default)]
    geometry: Option<Geometry>,
}

#[derive(Deserialize)]
struct Geometry {
    #[serde(default)]
    coordinates: serde_json::Value,
}

impl Geometry {
    /// Longitude, latitude.
    fn point(&self) -> Option<(f64, f64)> {
        match self.coordinates.as_array()?.as_slice() {
            [longitude, latitude, ..] => Some((longitude.as_f64()?, latitude.as_f64()?)),
            _ => None,
        }
    }
}

impl<Add: FnMut(Listed<'_>) -> rusqlite::Result<bool>> Reading<'_, Add> {
    fn geojson(&mut self, mut file: impl BufRead) -> Result<(), ImportError> {
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let length = (&mut file)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut text)
                .map_err(|source| self.unreadable(line, source))?;
            if length == 0 {
                break;
            }
            // Whole files of features have each on a line of its own, too, and a comma after it.
            let feature = text.trim_ascii();
            let feature = feature.strip_suffix(b",").unwrap_or(feature);
            if feature.is_empty() {
                continue;
            }
            match serde_json::from_slice::<Feature<'_>>(feature) {
                Ok(Feature {
                    properties: Some(fields),
                    geometry,
                }) => {
                    let point = geometry.and_then(|geometry| geometry.point());
                    self.take(line, &fields, point)?;
                }
                Ok(_) => self.tally.skip(Why::NoAddress, self.name, line),
                Err(_) => self.tally.skip(Why::Unreadable, self.name, line),
            }
        }
        Ok(())
    }

    fn csv(&mut self, mut file: impl BufRead) -> Result<(), ImportError> {
        let header = file
            .fill_buf()
            .map_err(|source| self.unreadable(1, source))?;
        let header = header
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let delimiter = if header.contains(&b';') { b';' } else { b',' };
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .from_reader(file);
        let headers = reader
            .byte_headers()
            .map_err(|error| self.unreadable(1, error.into()))?;
        let headers: csv::StringRecord = headers
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim().to_lowercase())
            .collect();
        for columns in [
            ["lon", "lon"],
            ["lat", "lat"],
            ["street", "nom_voie"],
            ["number", "numero"],
        ] {
            if !columns
                .iter()
                .any(|column| headers.iter().any(|header| header == *column))
            {
                return Err(self.wrong(FormatError::Columns(columns[0])));
            }
        }
        let is_french = headers.iter().any(|header| header == "nom_voie");
        if is_french {
            self.country = "FR";
        }

        let mut record = csv::ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(|error| {
            self.unreadable(
                record.position().map_or(1, csv::Position::line),
                error.into(),
            )
        })? {
            let line = record.position().map_or(1, csv::Position::line);
            let text = csv::StringRecord::from_byte_record(std::mem::take(&mut record));
            let Ok(text) = text else {
                self.tally.skip(Why::Unreadable, self.name, line);
                continue;
            };
            match text.deserialize::<Fields<'_>>(Some(&headers)) {
                Ok(fields) => {
                    let point = fields
                        .lon
                        .trim()
                        .parse()
                        .ok()
                        .zip(fields.lat.trim().parse().ok());
                    self.take(line, &fields, point)?;
                }
                Err(_) => self.tally.skip(Why::Unreadable, self.name, line),
            }
            record = text.into_byte_record();
        }
        Ok(())
    }

    /// Takes an address, or counts why not. The point is longitude, latitude.
    fn take(
        &mut self,
        line: u64,
        fields: &Fields<'_>,
        point: Option<(f64, f64)>,
    ) -> Result<(), ImportError> {
        match listed(self.country, fields, point) {
            Ok(address) => {
                if (self.add)(address)? {
                    self.tally.taken += 1;
                } else {
                    self.tally.skip(Why::Repeated, self.name, line);
                }
            }
            Err(why) => self.tally.skip(why, self.name, line),
        }
        Ok(())
    }

    fn wrong(&self, source: FormatError) -> ImportError {
        ImportError::Format {
            name: self.name.to_owned(),
            source,
        }
    }

    fn unreadable(&self, line: u64, source: io::Error) -> ImportError {
        ImportError::Read {
            name: self.name.to_owned(),
            line,
            source,
        }
    }
}

fn listed<'a>(
    country: &'a str,
    fields: &'a Fields<'_>,
    point: Option<(f64, f64)>,
) -> Result<Listed<'a>, Why> {
    let street = fields.street.trim();
    if street.is_empty() {
        return Err(Why::NoStreet);
    }
    let house = House::listed(&fields.number, &fields.rep).ok_or(Why::NoNumber)?;
    let postcode = fields.postcode.trim();
    let town = [fields.city.trim(), fields.district.trim(), postcode]
        .into_iter()
        .find(|name| !name.is_empty())
        .ok_or(Why::NoTown)?;
    let (longitude, latitude) = point.ok_or(Why::NoPoint)?;
    let point = LatLng::new(latitude, longitude).map_err(|_| Why::OffEarth)?;
    Ok(Listed {
        house,
        street,
        postcode,
        town,
        country,
        point,
    })
}
