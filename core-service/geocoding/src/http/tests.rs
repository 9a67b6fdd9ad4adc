//! The clients against a server on loopback with the documented responses of each protocol.

mod limits;

use domain::address::LatLng;
use upstream::test_server::{Reply, TestServer};

use super::*;

use crate::{Mismatch, Options, Precision};

const NOMINATIM: &str = r#"[{"place_id":1,"licence":"ODbL","osm_type":"node","osm_id":1,"lat":"48.8700","lon":"2.3314","category":"place","type":"house","place_rank":30,"importance":0.1,"addresstype":"place","name":"","display_name":"24, Rue de la Paix, Paris, France","address":{"house_number":"24","road":"Rue de la Paix","suburb":"2e","city":"Paris","postcode":"75002","country":"France","country_code":"fr"},"boundingbox":["48.8","48.9","2.3","2.4"]}]"#;
const PHOTON: &str = r#"{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"coordinates":[2.3314,48.87],"type":"Point"},"properties":{"osm_type":"N","osm_id":1,"osm_key":"place","osm_value":"house","type":"house","countrycode":"FR","housenumber":"24","street":"Rue de la Paix","postcode":"75002","city":"Paris","country":"France"}}]}"#;
const ADDOK: &str = r#"{"type":"FeatureCollection","version":"draft","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[2.3314,48.87]},"properties":{"label":"24 Rue de la Paix 75002 Paris","score":0.97,"housenumber":"24","id":"75102_6980_00024","name":"24 Rue de la Paix","postcode":"75002","citycode":"75102","city":"Paris","context":"75, Paris","type":"housenumber","importance":0.7,"street":"Rue de la Paix"}}],"query":"24 rue de la paix"}"#;
const PELIAS: &str = r#"{"geocoding":{"version":"0.2"},"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[2.3314,48.87]},"properties":{"id":"a","layer":"address","name":"24 Rue de la Paix","housenumber":"24","street":"Rue de la Paix","postalcode":"75002","confidence":1,"match_type":"exact","accuracy":"point","country_code":"FR","locality":"Paris","label":"24 Rue de la Paix, Paris, France"}}]}"#;

const TEXT: &str = "24 rue de la Paix, Paris";

/// Each protocol with its documented response to [`TEXT`], an empty one, and one with the street
/// alone.
const PROTOCOLS: [(Protocol, &str, &str, &str); 4] = [
    (
        Protocol::Nominatim,
        NOMINATIM,
        "[]",
        r#"[{"lat":"48.87","lon":"2.33","category":"highway","addresstype":"road","display_name":"Rue de la Paix, Paris","address":{"road":"Rue de la Paix","city":"Paris","country_code":"fr"}}]"#,
    ),
    (
        Protocol::Photon,
        PHOTON,
        r#"{"type":"FeatureCollection","features":[]}"#,
        r#"{"features":[{"geometry":{"coordinates":[2.33,48.87]},"properties":{"type":"street","name":"Rue de la Paix","city":"Paris","countrycode":"FR"}}]}"#,
    ),
    (
        Protocol::Addok,
        ADDOK,
        r#"{"type":"FeatureCollection","features":[]}"#,
        r#"{"features":[{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"Rue de la Paix, Paris","score":0.8,"type":"street","city":"Paris"}}]}"#,
    ),
    (
        Protocol::Pelias,
        PELIAS,
        r#"{"type":"FeatureCollection","features":[]}"#,
        r#"{"features":[{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"Rue de la Paix, Paris","confidence":0.8,"layer":"street","locality":"Paris","country_code":"FR"}}]}"#,
    ),
];

fn geocoder(protocol: Protocol, base_url: &Url, options: &str) -> HttpGeocoder {
    let spec = HttpGeocoderSpec {
        protocol,
        base_url: base_url.clone(),
        options: Options::parse(protocol, options).unwrap(),
    };
    HttpGeocoder::new(&spec, "fr", "test").unwrap()
}

/// For tests in which neither the timeout nor the rate limit applies.
const UNLIMITED: &str = "timeout=20s&rate=1000";

/// The result of a query for a reply of the server.
async fn result_of(
    protocol: Protocol,
    query: &Query,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> Result<GeocodeResult, Error> {
    let server = TestServer::start(move |_, _| reply()).await;
    let geocoder = geocoder(protocol, &server.url, UNLIMITED);
    geocoder.geocode(query).await
}

fn reply_with(body: &str) -> impl Fn() -> Reply + Send + Sync + 'static {
    let body = body.to_owned();
    move || Reply::Text(200, body.clone())
}

#[tokio::test]
async fn every_protocol_finds_a_house_and_does_not_swap_its_coordinates() {
    for (protocol, house, ..) in PROTOCOLS {
        let GeocodeResult::Found(found) = result_of(protocol, &Query::new(TEXT), reply_with(house))
            .await
            .unwrap()
        else {
            panic!("{protocol:?}");
        };
        assert_eq!(
            found.lat_lng,
            LatLng::new(48.87, 2.3314).unwrap(),
            "{protocol:?}"
        );
        assert_eq!(found.precision, Precision::House, "{protocol:?}");
        assert_eq!(found.postal_code.as_deref(), Some("75002"), "{protocol:?}");
        assert_eq!(found.locality.as_deref(), Some("Paris"), "{protocol:?}");
        assert!(
            found.formatted.starts_with("24 Rue de la Paix"),
            "{protocol:?}: {}",
            found.formatted
        );
    }
}

#[tokio::test]
async fn an_inexact_address_is_a_partial_match_and_an_empty_response_not_found() {
    for (protocol, house, empty, street) in PROTOCOLS {
        let nothing = result_of(protocol, &Query::new(TEXT), reply_with(empty)).await;
        assert_eq!(nothing.unwrap(), GeocodeResult::NotFound, "{protocol:?}");

        // The street alone, and a different house number.
        let other_number = Query::new("25 rue de la Paix, Paris");
        for (query, body) in [(&Query::new(TEXT), street), (&other_number, house)] {
            let result = result_of(protocol, query, reply_with(body)).await.unwrap();
            let GeocodeResult::Partial(partial) = result else {
                panic!("{protocol:?}: {result:?}");
            };
            assert_eq!(
                partial.mismatch,
                Mismatch::HouseNumber(None),
                "{protocol:?}"
            );
            assert_eq!(
                partial.candidates[0].precision,
                Precision::Street,
                "{protocol:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_invalid_response_is_an_error() {
    for (protocol, house, ..) in PROTOCOLS {
        let replies: [fn(&str) -> Reply; 9] = [
            |_| Reply::Text(200, "<html>busy</html>".to_owned()),
            |_| Reply::Text(200, String::new()),
            |_| Reply::Text(200, "7".to_owned()),
            |_| Reply::Text(401, "no key".to_owned()),
            |_| Reply::Text(404, "no such path".to_owned()),
            |_| Reply::Text(429, "slower".to_owned()),
            |_| Reply::Text(500, "oh".to_owned()),
            |_| Reply::Endless,
            |house| Reply::Text(200, house[..house.len() / 2].to_owned()),
        ];
        for (case, reply) in replies.into_iter().enumerate() {
            let result = result_of(protocol, &Query::new(TEXT), move || reply(house)).await;
            assert!(
                matches!(result, Err(Error::Unavailable(_))),
                "{protocol:?} {case}: {result:?}"
            );
        }
        // A rejected query is not a failure of the service.
        let rejected = result_of(protocol, &Query::new(TEXT), || {
            Reply::Text(400, "{}".to_owned())
        })
        .await;
        assert_eq!(rejected.unwrap(), GeocodeResult::NotFound, "{protocol:?}");
    }
}

#[tokio::test]
async fn invalid_places_are_skipped() {
    let invalid = [
        r#"{"geometry":{"coordinates":[2.33,480.87]},"properties":{"label":"x","score":1,"type":"housenumber","housenumber":"24"}}"#,
        r#"{"geometry":{"coordinates":["2.33","48.87"]},"properties":{"label":"x","score":1,"type":"housenumber"}}"#,
        r#"{"geometry":null,"properties":null}"#,
        r#"{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"","score":1,"type":"housenumber","housenumber":"24"}}"#,
        r#"{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"x","score":0.1,"type":"housenumber","housenumber":"24"}}"#,
        r#"{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"x","score":1,"type":"planet","housenumber":"24"}}"#,
    ];
    let only_invalid = format!(r#"{{"features":[{}]}}"#, invalid.join(","));
    let nothing = result_of(
        Protocol::Addok,
        &Query::new(TEXT),
        reply_with(&only_invalid),
    )
    .await;
    assert_eq!(nothing.unwrap(), GeocodeResult::NotFound);

    let house =
        &ADDOK[ADDOK.find(r#"{"type":"Feature","#).unwrap()..ADDOK.find(r#"],"query"#).unwrap()];
    let mixed = format!(r#"{{"features":[{},{house}]}}"#, invalid[..3].join(","));
    let found = result_of(Protocol::Addok, &Query::new(TEXT), reply_with(&mixed)).await;
    assert!(matches!(found.unwrap(), GeocodeResult::Found(_)));
}

#[tokio::test]
async fn a_place_in_another_country_is_not_found() {
    let query = Query {
        country: Some("BE".to_owned()),
        ..Query::new(TEXT)
    };
    // Addok's responses have no country.
    for (protocol, house, ..) in PROTOCOLS
        .into_iter()
        .filter(|(protocol, ..)| *protocol != Protocol::Addok)
    {
        let result = result_of(protocol, &query, reply_with(house)).await;
        assert_eq!(result.unwrap(), GeocodeResult::NotFound, "{protocol:?}");
    }
}

#[tokio::test]
async fn only_configured_countries_are_searched() {
    for (protocol, house, ..) in PROTOCOLS {
        let reply = reply_with(house);
        let server = TestServer::start(move |_, _| reply()).await;
        let options = format!("{UNLIMITED}&country=fr");
        let geocoder = geocoder(protocol, &server.url, &options);
        let query = |country: Option<&str>| Query {
            country: country.map(str::to_owned),
            ..Query::new(TEXT)
        };

        let in_belgium = geocoder.geocode(&query(Some("BE"))).await.unwrap();
        assert_eq!(in_belgium, GeocodeResult::NotFound, "{protocol:?}");
        assert_eq!(server.targets(), [""; 0], "{protocol:?}");

        for country in [None, Some("FR")] {
            let result = geocoder.geocode(&query(country)).await.unwrap();
            let GeocodeResult::Found(found) = result else {
                panic!("{protocol:?}: {result:?}");
            };
            assert_eq!(found.country.as_deref(), Some("FR"), "{protocol:?}");
        }
    }
}

/// The URL of a request.
fn url(protocol: Protocol, base_url: &Url, options: &str, query: &Query) -> String {
    let geocoder = geocoder(protocol, base_url, options);
    let request = GeocodeRequest::new(query, &geocoder.spec.options, &geocoder.language).unwrap();
    geocoder.url(&request).to_string()
}

#[test]
fn requests_have_the_documented_form_with_the_key_and_the_point() {
    let base_url: Url = "https://geo.example/base/?key=K".parse().unwrap();
    let query = Query {
        country: Some("FR".to_owned()),
        near: Some(LatLng::new(48.5, 2.25).unwrap()),
        ..Query::new("24 rue & paix")
    };
    for (protocol, expected) in [
        (
            Protocol::Nominatim,
            "https://geo.example/base/search?key=K&q=24+rue+%26+paix&format=jsonv2&addressdetails=1&limit=5&accept-language=fr&countrycodes=fr&viewbox=1.9500%2C48.2000%2C2.5500%2C48.8000",
        ),
        (
            Protocol::Photon,
            "https://geo.example/base/api?key=K&q=24+rue+%26+paix&limit=5&lang=fr&lat=48.5&lon=2.25",
        ),
        (
            Protocol::Addok,
            "https://geo.example/base/search/?key=K&q=24+rue+%26+paix&limit=5&lat=48.5&lon=2.25",
        ),
        (
            Protocol::Pelias,
            "https://geo.example/base/v1/search?key=K&text=24+rue+%26+paix&size=5&lang=fr&boundary.country=FR&focus.point.lat=48.5&focus.point.lon=2.25",
        ),
    ] {
        assert_eq!(url(protocol, &base_url, "", &query), expected);
    }
}

#[test]
fn requests_follow_the_options() {
    let base_url: Url = "https://geo.example".parse().unwrap();
    let query = Query {
        near: Some(LatLng::new(48.5, 2.25).unwrap()),
        ..Query::new("24 rue")
    };
    let options = "country=fr,be&language=de-AT&bias=no";
    for (protocol, expected) in [
        (
            Protocol::Nominatim,
            "https://geo.example/search?q=24+rue&format=jsonv2&addressdetails=1&limit=5&accept-language=de-AT&countrycodes=fr%2Cbe",
        ),
        (
            Protocol::Photon,
            "https://geo.example/api?q=24+rue&limit=5&lang=de&countrycode=FR&countrycode=BE",
        ),
        (
            Protocol::Addok,
            "https://geo.example/search/?q=24+rue&limit=5",
        ),
        (
            Protocol::Pelias,
            "https://geo.example/v1/search?text=24+rue&size=5&lang=de-AT&boundary.country=FR%2CBE",
        ),
    ] {
        assert_eq!(url(protocol, &base_url, options, &query), expected);
    }
}
