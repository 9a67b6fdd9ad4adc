//! The adapters against a service on loopback that answers as each is documented to.

use super::*;
use crate::upstream::fixture::{Reply, Service};

const NOMINATIM: &str = r#"[{"place_id":1,"licence":"ODbL","osm_type":"node","osm_id":1,"lat":"48.8700","lon":"2.3314","category":"place","type":"house","place_rank":30,"importance":0.1,"addresstype":"place","name":"","display_name":"24, Rue de la Paix, Paris, France","address":{"house_number":"24","road":"Rue de la Paix","suburb":"2e","city":"Paris","postcode":"75002","country":"France","country_code":"fr"},"boundingbox":["48.8","48.9","2.3","2.4"]}]"#;
const PHOTON: &str = r#"{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"coordinates":[2.3314,48.87],"type":"Point"},"properties":{"osm_type":"N","osm_id":1,"osm_key":"place","osm_value":"house","type":"house","countrycode":"FR","housenumber":"24","street":"Rue de la Paix","postcode":"75002","city":"Paris","country":"France"}}]}"#;
const ADDOK: &str = r#"{"type":"FeatureCollection","version":"draft","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[2.3314,48.87]},"properties":{"label":"24 Rue de la Paix 75002 Paris","score":0.97,"housenumber":"24","id":"75102_6980_00024","name":"24 Rue de la Paix","postcode":"75002","citycode":"75102","city":"Paris","context":"75, Paris","type":"housenumber","importance":0.7,"street":"Rue de la Paix"}}],"query":"24 rue de la paix"}"#;
const PELIAS: &str = r#"{"geocoding":{"version":"0.2"},"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[2.3314,48.87]},"properties":{"id":"a","layer":"address","name":"24 Rue de la Paix","housenumber":"24","street":"Rue de la Paix","postalcode":"75002","confidence":1,"match_type":"exact","accuracy":"point","country_code":"FR","locality":"Paris","label":"24 Rue de la Paix, Paris, France"}}]}"#;

const TEXT: &str = "24 rue de la Paix, Paris";

/// Each protocol, its documented answer to [`TEXT`], the same empty, and the street alone.
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

fn online(protocol: Protocol, base: &Url, deadline: Duration) -> Online {
    let setting = OnlineSetting {
        protocol,
        base: base.clone(),
        rate: NonZeroU32::new(1000).unwrap(),
    };
    Online::with_limits(&setting, "fr", Limits { deadline, ..LIMITS }).unwrap()
}

/// What a protocol makes of a reply.
async fn answer_to(
    protocol: Protocol,
    query: &Query,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> Result<Answer, Error> {
    let service = Service::start(move |_, _| reply()).await;
    let geocoder = online(protocol, &service.url, Duration::from_secs(30));
    geocoder.geocode(query).await
}

fn text(body: &str) -> impl Fn() -> Reply + Send + Sync + 'static {
    let body = body.to_owned();
    move || Reply::Text(200, body.clone())
}

#[tokio::test]
async fn a_house_is_found_with_latitude_first_by_every_protocol() {
    for (protocol, house, ..) in PROTOCOLS {
        let Answer::Found(found) = answer_to(protocol, &Query::new(TEXT), text(house))
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
async fn what_is_not_exact_enough_is_told_and_nothing_is_nothing() {
    for (protocol, house, empty, street) in PROTOCOLS {
        let nothing = answer_to(protocol, &Query::new(TEXT), text(empty)).await;
        assert_eq!(nothing.unwrap(), Answer::NotFound, "{protocol:?}");

        // The street alone, and a house of another number.
        let another = Query::new("25 rue de la Paix, Paris");
        for (query, body) in [(&Query::new(TEXT), street), (&another, house)] {
            let answer = answer_to(protocol, query, text(body)).await.unwrap();
            let Answer::Unclear(unclear) = answer else {
                panic!("{protocol:?}: {answer:?}");
            };
            assert_eq!(unclear.missing, Missing::HouseNumber(None), "{protocol:?}");
            assert_eq!(
                unclear.candidates[0].precision,
                Precision::Street,
                "{protocol:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_service_that_does_not_answer_as_it_should_is_unavailable() {
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
            let answer = answer_to(protocol, &Query::new(TEXT), move || reply(house)).await;
            assert!(
                matches!(answer, Err(Error::Unavailable(_))),
                "{protocol:?} {case}: {answer:?}"
            );
        }
        // A question that it cannot read is no failure of the service.
        let refused = answer_to(protocol, &Query::new(TEXT), || {
            Reply::Text(400, "{}".to_owned())
        })
        .await;
        assert_eq!(refused.unwrap(), Answer::NotFound, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_service_that_is_silent_costs_a_deadline() {
    let service = Service::start(|_, _| Reply::Silence).await;
    let geocoder = online(Protocol::Photon, &service.url, Duration::from_millis(50));

    let answer = geocoder.geocode(&Query::new(TEXT)).await;

    assert!(matches!(answer, Err(Error::Unavailable(_))), "{answer:?}");
}

#[tokio::test]
async fn odd_places_are_left_out_and_the_others_kept() {
    let odd = [
        r#"{"geometry":{"coordinates":[2.33,480.87]},"properties":{"label":"x","score":1,"type":"housenumber","housenumber":"24"}}"#,
        r#"{"geometry":{"coordinates":["2.33","48.87"]},"properties":{"label":"x","score":1,"type":"housenumber"}}"#,
        r#"{"geometry":null,"properties":null}"#,
        r#"{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"","score":1,"type":"housenumber","housenumber":"24"}}"#,
        r#"{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"x","score":0.1,"type":"housenumber","housenumber":"24"}}"#,
        r#"{"geometry":{"coordinates":[2.33,48.87]},"properties":{"label":"x","score":1,"type":"planet","housenumber":"24"}}"#,
    ];
    let alone = format!(r#"{{"features":[{}]}}"#, odd.join(","));
    let nothing = answer_to(Protocol::Addok, &Query::new(TEXT), text(&alone)).await;
    assert_eq!(nothing.unwrap(), Answer::NotFound);

    let house =
        &ADDOK[ADDOK.find(r#"{"type":"Feature","#).unwrap()..ADDOK.find(r#"],"query"#).unwrap()];
    let beside = format!(r#"{{"features":[{},{house}]}}"#, odd[..3].join(","));
    let found = answer_to(Protocol::Addok, &Query::new(TEXT), text(&beside)).await;
    assert!(matches!(found.unwrap(), Answer::Found(_)));
}

#[tokio::test]
async fn a_place_in_another_country_is_none() {
    let query = Query {
        country: Some("BE".to_owned()),
        ..Query::new(TEXT)
    };
    for protocol in [Protocol::Nominatim, Protocol::Photon, Protocol::Pelias] {
        let (_, house, ..) = PROTOCOLS
            .into_iter()
            .find(|(known, ..)| *known == protocol)
            .unwrap();
        let answer = answer_to(protocol, &query, text(house)).await;
        assert_eq!(answer.unwrap(), Answer::NotFound, "{protocol:?}");
    }
}

#[test]
fn requests_are_as_documented_with_the_key_and_the_area() {
    let base: Url = "https://geo.example/base/?key=K".parse().unwrap();
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
        let url = online(protocol, &base, LIMITS.deadline).url(&query);
        assert_eq!(url.as_str(), expected);
    }
}

#[test]
fn a_service_is_asked_no_more_often_than_it_permits() {
    let base: Url = "https://geo.example".parse().unwrap();
    let setting = OnlineSetting {
        protocol: Protocol::Nominatim,
        base,
        rate: NonZeroU32::MIN,
    };
    let geocoder = Online::new(&setting, "fr").unwrap();

    assert!(geocoder.rate.check().is_ok());
    assert!(geocoder.rate.check().is_err());
}
