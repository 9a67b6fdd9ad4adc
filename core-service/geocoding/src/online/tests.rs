//! The adapters against a service on loopback that answers as each is documented to.

use domain::address::LatLng;
use futures_util::future::join_all;
use upstream::fixture::{Reply, Service};

use super::*;

use crate::{Missing, Options};

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

/// A geocoder with an operator's options, where a test waits for nothing else.
fn online(protocol: Protocol, base: &Url, options: &str) -> Online {
    let setting = OnlineSetting {
        protocol,
        base: base.clone(),
        options: Options::read(protocol, options).unwrap(),
    };
    Online::new(&setting, "fr").unwrap()
}

/// Patient, and as often as it likes.
const EASY: &str = "timeout=20s&rate=1000";

/// What a protocol makes of a reply.
async fn answer_to(
    protocol: Protocol,
    query: &Query,
    reply: impl Fn() -> Reply + Send + Sync + 'static,
) -> Result<Answer, Error> {
    let service = Service::start(move |_, _| reply()).await;
    let geocoder = online(protocol, &service.url, EASY);
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

/// Why a geocoder has no answer.
async fn failure(geocoder: &Online, query: &Query) -> String {
    match geocoder.geocode(query).await {
        Err(Error::Unavailable(cause)) => cause.to_string(),
        Ok(answer) => panic!("{answer:?}"),
    }
}

#[tokio::test]
async fn a_service_that_is_silent_costs_the_time_it_is_given() {
    let service = Service::start(|_, _| Reply::Silence).await;
    let geocoder = online(Protocol::Photon, &service.url, "timeout=1s");

    let told = failure(&geocoder, &Query::new(TEXT)).await;

    assert_eq!(told, "photon (127.0.0.1): no answer within 1s");
}

#[tokio::test]
async fn no_more_is_asked_at_once_than_the_operator_says() {
    let service = Service::start(|_, _| Reply::Silence).await;
    let options = "timeout=2s&rate=1000&concurrency=1";
    let geocoder = online(Protocol::Photon, &service.url, options);
    let query = Query::new(TEXT);

    let told = tokio::join!(failure(&geocoder, &query), failure(&geocoder, &query));

    let mut told = [told.0, told.1];
    told.sort_unstable();
    assert_eq!(
        told,
        [
            "photon (127.0.0.1): no answer within 2s",
            "photon (127.0.0.1): too many calls are under way"
        ]
    );
    assert_eq!(service.targets().len(), 1);
}

#[tokio::test]
async fn a_service_that_asks_for_time_is_given_it_by_every_protocol() {
    const WAIT: &[u8] = b"HTTP/1.1 429 -\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
    for (protocol, ..) in PROTOCOLS {
        let service = Service::start(|_, _| Reply::Bytes(WAIT.to_vec())).await;
        let geocoder = online(protocol, &service.url, EASY);
        let query = Query::new(TEXT);

        let refused = failure(&geocoder, &query).await;
        let resting = failure(&geocoder, &query).await;

        assert!(
            refused.ends_with("answered with 429 Too Many Requests"),
            "{refused}"
        );
        assert!(
            resting.contains("the service is left alone for another"),
            "{resting}"
        );
        assert_eq!(service.targets().len(), 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_service_that_fails_again_and_again_is_left_alone_by_every_protocol() {
    for (protocol, ..) in PROTOCOLS {
        let service = Service::start(|_, _| Reply::Text(500, String::new())).await;
        let geocoder = online(protocol, &service.url, EASY);

        for _ in 0..10 {
            failure(&geocoder, &Query::new(TEXT)).await;
        }

        assert_eq!(service.targets().len(), 5, "{protocol:?}");
    }
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
    // Addok's answers do not say.
    for (protocol, house, ..) in PROTOCOLS
        .into_iter()
        .filter(|(protocol, ..)| *protocol != Protocol::Addok)
    {
        let answer = answer_to(protocol, &query, text(house)).await;
        assert_eq!(answer.unwrap(), Answer::NotFound, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_service_is_asked_about_the_operators_countries_alone() {
    for (protocol, house, ..) in PROTOCOLS {
        let reply = text(house);
        let service = Service::start(move |_, _| reply()).await;
        let options = format!("{EASY}&country=fr");
        let geocoder = online(protocol, &service.url, &options);
        let about = |country: Option<&str>| Query {
            country: country.map(str::to_owned),
            ..Query::new(TEXT)
        };

        let elsewhere = geocoder.geocode(&about(Some("BE"))).await.unwrap();
        assert_eq!(elsewhere, Answer::NotFound, "{protocol:?}");
        assert_eq!(service.targets(), [""; 0], "{protocol:?}");

        for country in [None, Some("FR")] {
            let answer = geocoder.geocode(&about(country)).await.unwrap();
            let Answer::Found(found) = answer else {
                panic!("{protocol:?}: {answer:?}");
            };
            assert_eq!(found.country.as_deref(), Some("FR"), "{protocol:?}");
        }
    }
}

/// What is asked for, in a service's own words.
fn url(protocol: Protocol, base: &Url, options: &str, query: &Query) -> String {
    let geocoder = online(protocol, base, options);
    let question = geocoder.manner.question(query).unwrap();
    geocoder.url(&question).to_string()
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
        assert_eq!(url(protocol, &base, "", &query), expected);
    }
}

#[test]
fn requests_are_as_the_operators_options_say() {
    let base: Url = "https://geo.example".parse().unwrap();
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
        assert_eq!(url(protocol, &base, options, &query), expected);
    }
}

#[test]
fn what_is_asked_otherwise_is_kept_apart() {
    let base: Url = "https://geo.example?key=K".parse().unwrap();
    let mut labels: Vec<_> = ["", "country=fr", "country=fr,be", "language=de", "bias=no"]
        .into_iter()
        .flat_map(|options| {
            PROTOCOLS.map(|(protocol, ..)| online(protocol, &base, options).label())
        })
        .collect();
    let count = labels.len();

    labels.sort_unstable();
    labels.dedup();

    assert_eq!(labels.len(), count);
}

#[tokio::test]
async fn a_service_is_asked_no_more_often_than_it_permits() {
    let service = Service::start(|_, _| Reply::Text(200, "[]".to_owned())).await;
    let geocoder = online(Protocol::Nominatim, &service.url, "rate=1&timeout=1s");
    let query = Query::new(TEXT);
    let begun = Instant::now();

    let answers = join_all((0..5).map(|_| geocoder.ask(&query))).await;

    // Nobody waits for a turn that is farther away than half of what a question may take.
    let crowded = |answer: &Result<_, _>| matches!(answer, Err(Failure::Crowded));
    let crowded = answers.iter().filter(|answer| crowded(answer)).count();
    let asked = service.targets().len();
    assert_eq!(asked + crowded, 5, "{answers:?}");
    assert!(asked as u64 <= 1 + begun.elapsed().as_secs(), "{answers:?}");
}
