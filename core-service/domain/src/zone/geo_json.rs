//! Parses and formats zones as GeoJSON (RFC 7946).

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};

use super::{Area, Polygon, Zones};
use crate::{
    address::LatLng,
    definition::{Mistake, printable},
    visible::is_control,
};

/// Maximum length of a document in bytes.
const MAX_LENGTH: usize = 2 * 1024 * 1024;
/// Maximum number of features in a document.
const MAX_ZONES: usize = 1_000;
/// Maximum length of a zone's name in characters.
const MAX_NAME: usize = 100;
/// The smallest ring is a closed triangle.
const MIN_RING_POSITIONS: usize = 4;

impl Zones {
    /// Parses GeoJSON (RFC 7946): polygons or multi-polygons, each with a name
    /// (`properties.name`). Reports the first mistake with its position.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        check_length(text)?;
        let document: Document =
            serde_json::from_str(text).map_err(|error| mistake(text, &error))?;
        if document.features.is_empty() {
            return Err(Mistake::at(
                text,
                0..0,
                "there are no zones: features is empty",
            ));
        }
        check_count(text, document.features.len())?;
        let mut zones = BTreeMap::new();
        for feature in document.features {
            let Name(name) = feature.properties.name;
            if zones
                .insert(name.clone(), feature.geometry.into())
                .is_some()
            {
                // Not found if the name is written with escapes.
                let start = text.rfind(&json!(name).to_string()).unwrap_or(0);
                let message = format!("there are two zones called {name:?}");
                return Err(Mistake::at(text, start..start, message));
            }
        }
        Ok(Self(Arc::new(zones)))
    }

    /// Formats as GeoJSON for [`Zones::parse`], one feature per line.
    pub fn to_geo_json(&self) -> String {
        let lines: Vec<_> = self
            .iter()
            .map(|(name, area)| {
                let polygons: Vec<Vec<_>> = area
                    .polygons()
                    .iter()
                    .map(|polygon| polygon.rings().iter().map(|ring| positions(ring)).collect())
                    .collect();
                json!({
                    "type": "Feature",
                    "properties": { "name": name },
                    "geometry": { "type": "MultiPolygon", "coordinates": polygons },
                })
                .to_string()
            })
            .collect();
        let lines = lines.join(",\n");
        format!("{{\"type\":\"FeatureCollection\",\"features\":[\n{lines}\n]}}\n")
    }

    /// Fails if the zones exceed the limits of one document.
    pub fn check_size(&self) -> Result<(), Mistake> {
        let text = self.to_geo_json();
        check_length(&text)?;
        check_count(&text, self.0.len())
    }
}

fn check_length(text: &str) -> Result<(), Mistake> {
    if text.len() <= MAX_LENGTH {
        return Ok(());
    }
    let length = text.len();
    let message = format!("all zones together are at most {MAX_LENGTH} bytes long, not {length}");
    Err(Mistake::at(text, 0..0, message))
}

fn check_count(text: &str, count: usize) -> Result<(), Mistake> {
    if count <= MAX_ZONES {
        return Ok(());
    }
    let message = format!("there are at most {MAX_ZONES} zones, not {count}");
    Err(Mistake::at(text, 0..0, message))
}

/// Longitude first (RFC 7946 §3.1.1).
fn positions(ring: &[LatLng]) -> Vec<[f64; 2]> {
    ring.iter()
        .map(|point| [point.longitude(), point.latitude()])
        .collect()
}

/// Limit of the parser's message in characters: it quotes the text.
const MAX_MESSAGE: usize = 300;

/// Converts an error, whose column counts bytes, to a mistake, whose column counts characters.
fn mistake(text: &str, error: &serde_json::Error) -> Mistake {
    let line = text
        .split_inclusive('\n')
        .nth(error.line().saturating_sub(1));
    let before = line.map_or(0, |line| {
        let end = line.floor_char_boundary(error.column().saturating_sub(1));
        line[..end].chars().count()
    });
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let start = text.strip_suffix(&position).unwrap_or(&text).chars();
    let message: String = start.take(MAX_MESSAGE).collect();
    Mistake {
        line: error.line().max(1),
        column: before + 1,
        // On one line: the text that it quotes may have several.
        message: printable(&message.replace('\n', "\\n")),
    }
}

#[derive(Deserialize)]
#[serde(expecting = "GeoJSON: a FeatureCollection")]
struct Document {
    #[serde(rename = "type")]
    _type: DocumentType,
    features: Vec<Feature>,
    #[serde(default, rename = "crs", deserialize_with = "crs")]
    _crs: (),
}

#[derive(Deserialize)]
enum DocumentType {
    FeatureCollection,
}

#[derive(Deserialize)]
#[serde(expecting = "a Feature")]
struct Feature {
    #[serde(rename = "type")]
    _type: FeatureType,
    properties: Properties,
    geometry: Geometry,
}

#[derive(Deserialize)]
enum FeatureType {
    Feature,
}

#[derive(Deserialize)]
#[serde(expecting = "properties with a name")]
struct Properties {
    name: Name,
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let is_valid = !name.trim().is_empty()
            && name.trim() == name
            && name.chars().count() <= MAX_NAME
            && !name.contains(is_control);
        is_valid.then(|| Self(name.clone())).ok_or_else(|| {
            format!("{name:?} is not a valid name: give 1 to {MAX_NAME} characters without surrounding blanks or controls")
        })
    }
}

#[derive(Deserialize)]
#[serde(
    tag = "type",
    content = "coordinates",
    expecting = "a geometry: Polygon or MultiPolygon with coordinates"
)]
enum Geometry {
    Polygon(NonEmpty<Ring>),
    MultiPolygon(NonEmpty<NonEmpty<Ring>>),
}

impl From<Geometry> for Area {
    fn from(geometry: Geometry) -> Self {
        let polygons = match geometry {
            Geometry::Polygon(rings) => vec![rings],
            Geometry::MultiPolygon(polygons) => polygons.0,
        };
        let polygon = |NonEmpty(rings): NonEmpty<Ring>| {
            Polygon::new(rings.into_iter().map(|Ring(points)| points).collect())
        };
        Self::new(polygons.into_iter().map(polygon).collect())
    }
}

#[derive(Deserialize)]
#[serde(try_from = "Vec<T>", bound = "T: Deserialize<'de>")]
struct NonEmpty<T>(Vec<T>);

impl<T> TryFrom<Vec<T>> for NonEmpty<T> {
    type Error = &'static str;

    fn try_from(elements: Vec<T>) -> Result<Self, Self::Error> {
        if elements.is_empty() {
            return Err("the coordinates are empty");
        }
        Ok(Self(elements))
    }
}

/// RFC 7946 §3.1.6.
#[derive(Deserialize)]
#[serde(try_from = "Vec<Position>")]
struct Ring(Vec<LatLng>);

impl TryFrom<Vec<Position>> for Ring {
    type Error = &'static str;

    fn try_from(positions: Vec<Position>) -> Result<Self, Self::Error> {
        let points: Vec<_> = positions.into_iter().map(|Position(at)| at).collect();
        if points.len() < MIN_RING_POSITIONS {
            return Err("a ring has at least four positions");
        }
        if points.first() != points.last() {
            return Err("a ring must end where it starts");
        }
        Ok(Self(points))
    }
}

/// RFC 7946 §3.1.1: longitude, latitude and an optional altitude.
#[derive(Deserialize)]
#[serde(try_from = "Vec<f64>")]
struct Position(LatLng);

impl TryFrom<Vec<f64>> for Position {
    type Error = String;

    fn try_from(numbers: Vec<f64>) -> Result<Self, String> {
        let [longitude, latitude, ..] = *numbers else {
            return Err("a position is longitude and latitude".to_owned());
        };
        LatLng::new(latitude, longitude).map(Self).map_err(|_| {
            format!(
                "[{longitude}, {latitude}] is out of range: longitude comes first, from -180 to \
                 180, then latitude, from -90 to 90"
            )
        })
    }
}

/// Older files have a `crs` member; only the coordinate reference system of RFC 7946 is supported.
fn crs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let crs = Value::deserialize(deserializer)?;
    let name = crs.pointer("/properties/name").and_then(Value::as_str);
    let is_wgs84 = name.is_some_and(|name| name.ends_with("CRS84") || name == "EPSG:4326");
    if crs.is_null() || is_wgs84 {
        Ok(())
    } else {
        Err(D::Error::custom(
            "the coordinate reference system must be WGS 84 (RFC 7946): convert the file first",
        ))
    }
}

#[cfg(test)]
mod tests;
