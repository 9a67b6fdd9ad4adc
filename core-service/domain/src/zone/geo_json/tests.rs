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
            collection(&feature("\"\u{202e}a\"", "Polygon", "[]")),
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
            (5, 6),
            "invalid type: floating point `2.0`, expected a sequence",
        ),
        (
            polygon("[[2.0,48.0],[3.0,48.0],[2.0,48.0]]"),
            (5, 36),
            "at least four",
        ),
        (
            polygon("[[2.0,48.0],[3.0,48.0],[2.5,49.0],[2.1,48.0]]"),
            (5, 47),
            "end where it starts",
        ),
        (
            polygon("[[2.0,48.0],[3.0,91.0],[2.5,49.0],[2.0,48.0]]"),
            (5, 24),
            "longitude comes first",
        ),
        (
            polygon("[[2.0,48.0],[3.0]]"),
            (5, 19),
            "longitude and latitude",
        ),
        (polygon("[[2.0,48.0],3.0]"), (5, 16), "expected a sequence"),
        (polygon("[[2.0,\"48\"]]"), (5, 11), "expected f64"),
        (polygon("[]"), (5, 4), "at least four"),
        (
            collection(&feature("\"a\"", "Polygon", "[]")),
            (5, 3),
            "are empty",
        ),
        (
            collection(&feature("\"a\"", "Polygon", &"[".repeat(500))),
            (5, 3),
            "invalid type: sequence, expected f64",
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
        assert_eq!((mistake.line, mistake.column), position, "{mistake}");
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
