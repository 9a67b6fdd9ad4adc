//! Parses and formats zones as GeoJSON (RFC 7946).

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::{Value, json};

use super::{Area, Polygon, Zones, coordinates::Coordinates};
use crate::{
    address::LatLng,
    definition::{Mistake, printable},
};

/// Maximum length of a document in bytes.
const MAX_LENGTH: usize = 2 * 1024 * 1024;
/// Maximum number of features in a document.
const MAX_ZONES: usize = 1_000;
/// Maximum length of a zone's name in characters.
const MAX_NAME: usize = 100;

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
            if zones.insert(name.clone(), feature.geometry.0).is_some() {
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

/// Converts an error, whose column counts bytes, to a mistake, whose column counts characters.
fn mistake(text: &str, error: &serde_json::Error) -> Mistake {
    let line = text
        .split_inclusive('\n')
        .nth(error.line().saturating_sub(1));
    let before = line.map_or(0, |line| {
        let end = line.floor_char_boundary(error.column().saturating_sub(1));
        line[..end].chars().count()
    });
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    Mistake {
        line: error.line().max(1),
        column: before + 1,
        // On one line: the text that it quotes may have several.
        message: printable(
            message
                .strip_suffix(&position)
                .unwrap_or(&message)
                .replace('\n', "\\n"),
        ),
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
            && !name.contains(char::is_control);
        is_valid.then(|| Self(name.clone())).ok_or_else(|| {
            format!("{name:?} is not a valid name: give 1 to {MAX_NAME} characters without surrounding blanks")
        })
    }
}

#[derive(Deserialize)]
#[serde(try_from = "GeometryObject")]
struct Geometry(Area);

#[derive(Deserialize)]
#[serde(expecting = "a geometry: Polygon or MultiPolygon")]
struct GeometryObject {
    #[serde(rename = "type")]
    kind: GeometryType,
    coordinates: Coordinates,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum GeometryType {
    Polygon,
    MultiPolygon,
}

impl TryFrom<GeometryObject> for Geometry {
    type Error = String;

    fn try_from(geometry: GeometryObject) -> Result<Self, String> {
        let polygons = match (geometry.kind, geometry.coordinates) {
            (GeometryType::Polygon, Coordinates::Polygon(rings)) => vec![rings],
            (GeometryType::MultiPolygon, Coordinates::MultiPolygon(polygons)) => polygons,
            (kind, other) => {
                return Err(format!(
                    "the coordinates of a {kind:?} cannot be those of {other}"
                ));
            }
        };
        Ok(Self(Area::new(
            polygons.into_iter().map(Polygon::new).collect(),
        )))
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
mod tests {
    use super::*;

    const TRIANGLE: &str = "[[2.0,48.0],[3.0,48.0],[2.5,49.0],[2.0,48.0]]";

    fn collection(features: &str) -> String {
        format!("{{\"type\": \"FeatureCollection\",\n \"features\": [\n{features}]}}")
    }

    fn feature(name: &str, kind: &str, coordinates: &str) -> String {
        format!(
            "{{\"type\": \"Feature\", \"properties\": {{\"name\": {name}}}, \"geometry\":\n\
             {{\"type\": \"{kind}\", \"coordinates\":\n{coordinates}}}}}"
        )
    }

    fn at(latitude: f64, longitude: f64) -> LatLng {
        LatLng::new(latitude, longitude).unwrap()
    }

    #[test]
    fn longitude_comes_first() {
        let text = collection(&feature("\"Île\"", "Polygon", &format!("[{TRIANGLE}]")));

        let zones = Zones::parse(&text).unwrap();

        assert_eq!(zones.0.keys().collect::<Vec<_>>(), ["Île"]);
        assert_eq!(zones.contains("Île", at(48.3, 2.5)), Some(true));
        assert_eq!(zones.contains("Île", at(2.5, 48.3)), Some(false));
        assert_eq!(zones.contains("Ile", at(48.3, 2.5)), None);
    }

    #[test]
    fn formatted_zones_parse_back() {
        let hole = "[[2.4,48.1,35],[2.6,48.1],[2.5,48.2],[2.4,48.1,35]]";
        let both = [
            feature("\"a\"", "Polygon", &format!("[{TRIANGLE},{hole}]")),
            // Members in any order, and members that are ignored.
            format!(
                "{{\"geometry\": {{\"coordinates\": [[{TRIANGLE}],[{TRIANGLE}]], \"bbox\": [1],\n\
                 \"type\": \"MultiPolygon\"}}, \"id\": 5, \"properties\": {{\"fill\": null, \
                 \"name\": \"b \\\"c\\\"\"}}, \"type\": \"Feature\"}}"
            ),
        ];
        let zones = Zones::parse(&collection(&both.join(","))).unwrap();

        let written = zones.to_geo_json();

        assert_eq!(Zones::parse(&written), Ok(zones.clone()));
        assert_eq!(written.lines().count(), 4);
        assert_eq!(zones.contains("a", at(48.15, 2.5)), Some(false));
    }

    #[test]
    fn zones_are_added_and_replaced_by_name() {
        let zone = |name: &str, coordinates: &str| {
            Zones::parse(&collection(&feature(name, "Polygon", coordinates))).unwrap()
        };
        let elsewhere = "[[[12.0,48.0],[13.0,48.0],[12.5,49.0],[12.0,48.0]]]";

        let zones = zone("\"a\"", &format!("[{TRIANGLE}]"))
            .merged_with(&zone("\"b\"", elsewhere))
            .merged_with(&zone("\"a\"", elsewhere));

        assert_eq!(zones.0.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(zones.contains("a", at(48.3, 12.5)), Some(true));
        assert_eq!(zones.only("b"), zone("\"b\"", elsewhere));
        assert_eq!(zones.only("c"), Zones::default());
    }

    #[test]
    fn a_mistake_has_its_position() {
        let duplicate = feature("\"a\"", "Polygon", &format!("[{TRIANGLE}]"));
        let polygon = |ring: &str| collection(&feature("\"é\"", "Polygon", &format!("[{ring}]")));
        let mut mistakes = Vec::new();
        for (text, position, message) in [
            (String::new(), (1, 1), "EOF"),
            ("{".to_owned(), (1, 1), "EOF"),
            ("[]".to_owned(), (1, 2), "invalid length"),
            (
                "5".to_owned(),
                (1, 1),
                "expected GeoJSON: a FeatureCollection",
            ),
            (
                "{\"type\": \"Feature\"}".to_owned(),
                (1, 18),
                "expected `FeatureCollection`",
            ),
            (collection(""), (1, 1), "there are no zones"),
            (
                collection(&feature("5", "Polygon", "[]")),
                (3, 44),
                "expected a string",
            ),
            (
                collection(&feature("\" \"", "Polygon", "[]")),
                (3, 47),
                "is not a valid name",
            ),
            (
                collection(&feature("\" a\"", "Polygon", "[]")),
                (3, 48),
                "is not a valid name",
            ),
            (
                collection("{\"type\": \"Feature\", \"properties\": {}}"),
                (3, 36),
                "missing field `name`",
            ),
            (
                collection(&feature("\"a\"", "Point", "[2.0,48.0]")),
                (4, 16),
                "expected `Polygon` or `MultiPolygon`",
            ),
            (
                collection(&feature("\"a\"", "MultiPolygon", &format!("[{TRIANGLE}]"))),
                (5, 49),
                "the coordinates of a MultiPolygon cannot be those of a Polygon",
            ),
            (
                polygon("[[2.0,48.0],[3.0,48.0],[2.0,48.0]]"),
                (5, 35),
                "at least four",
            ),
            (
                polygon("[[2.0,48.0],[3.0,48.0],[2.5,49.0],[2.1,48.0]]"),
                (5, 46),
                "end where it starts",
            ),
            (
                polygon("[[2.0,48.0],[3.0,91.0],[2.5,49.0],[2.0,48.0]]"),
                (5, 23),
                "longitude comes first",
            ),
            (
                polygon("[[2.0,48.0],[3.0]]"),
                (5, 18),
                "longitude and latitude",
            ),
            (
                polygon("[[2.0,48.0],3.0]"),
                (5, 17),
                "different nesting depths",
            ),
            (polygon("[[2.0,\"48\"]]"), (5, 11), "expected coordinates"),
            (polygon("[]"), (5, 3), "are empty"),
            (
                collection(&feature("\"a\"", "Polygon", &"[".repeat(500))),
                (5, 124),
                "recursion limit",
            ),
            (
                collection(&[duplicate.as_str(), duplicate.as_str()].join(",")),
                (5, 94),
                "two zones called \"a\"",
            ),
            (
                collection(&feature("\"a\"", "Polygon", &format!("[{TRIANGLE}]"))).replace(
                    "\"FeatureCollection\",",
                    "\"FeatureCollection\", \"crs\": {\"properties\": {\"name\": \"EPSG:2154\"}},",
                ),
                (1, 74),
                "must be WGS 84",
            ),
        ] {
            let mistake = Zones::parse(&text).unwrap_err();
            assert!(mistake.message.contains(message), "{mistake}");
            mistakes.push((position, mistake));
        }
        for (position, mistake) in &mistakes {
            let found = (mistake.line, mistake.column);
            assert_eq!(found, *position, "{mistake} {mistakes:?}");
        }
    }

    #[test]
    fn a_store_has_a_thousand_zones_and_two_mebibytes_of_them_at_most() {
        let size = |count: usize, positions: usize| {
            let ring = vec![at(48.0, 2.0); positions];
            let area = Area::new(vec![Polygon::new(vec![ring])]);
            let zones: Zones = (0..count)
                .map(|number| (number.to_string(), area.clone()))
                .collect();
            let checked = zones.check_size().map_err(|mistake| mistake.message);
            (checked, zones.to_geo_json().len())
        };

        assert_eq!(size(1_000, 4).0, Ok(()));
        let message = "there are at most 1000 zones, not 1001".to_owned();
        assert_eq!(size(1_001, 4).0, Err(message));
        let (checked, length) = size(1, 200_000);
        let message = format!("all zones together are at most 2097152 bytes long, not {length}");
        assert_eq!(checked, Err(message));
    }

    #[test]
    fn wgs84_may_be_named_as_the_coordinate_reference_system() {
        let zones = collection(&feature("\"a\"", "Polygon", &format!("[{TRIANGLE}]")));
        for crs in [
            "null",
            "{\"properties\": {\"name\": \"urn:ogc:def:crs:OGC:1.3:CRS84\"}}",
            "{\"properties\": {\"name\": \"EPSG:4326\"}}",
        ] {
            let text = zones.replacen('{', &format!("{{\"crs\": {crs}, "), 1);
            assert!(Zones::parse(&text).is_ok(), "{text}");
        }
    }
}
