//! Places in other towns than the query's, as tables and against a server on loopback.

use domain::address::LatLng;
use serde_json::{Value, json};
use upstream::test_server::{Reply, TestServer};

mod countries;

use super::*;
use crate::{
    GeocodeResult, Geocoder as _, HttpGeocoder, HttpGeocoderSpec, Options, Precision, Protocol,
};

fn geocode_match(formatted: &str, postcode: &str, town: &str, country: &str) -> GeocodeMatch {
    GeocodeMatch {
        formatted: formatted.to_owned(),
        postal_code: Some(postcode.to_owned()),
        locality: Some(town.to_owned()),
        country: Some(country.to_owned()),
        lat_lng: LatLng::new(48.0, 2.0).unwrap(),
        precision: Precision::House,
        confidence: 1.0,
        is_in_nearest_town: false,
        reasons: Vec::new(),
    }
}

/// Checks the texts of queries for a place.
fn assert_agreement(found: &GeocodeMatch, areas: &[&str], cases: &[(&str, Agreement)]) {
    let house = found.formatted.split(',').next().unwrap();
    let (number, street) = house
        .split_once(' ')
        .filter(|(number, _)| number.parse::<u32>().is_ok())
        .unwrap_or(("", house));
    let place = Place {
        number: Some(number.to_owned()),
        street: Some(street.to_owned()),
        areas: areas.iter().map(|area| (*area).to_owned()).collect(),
        ..Place::default()
    };
    for (text, expected) in cases {
        assert_eq!(check(text, found, &place), *expected, "{text}");
    }
}

fn unknown_town(postcode: &str, town: &str) -> Agreement {
    Agreement::UnknownTown {
        postcode: Some(postcode.to_owned()),
        towns: vec![town.to_owned()],
    }
}

fn unknown_towns(towns: &[&str]) -> Agreement {
    Agreement::UnknownTown {
        postcode: None,
        towns: towns.iter().map(|town| (*town).to_owned()).collect(),
    }
}

fn contradiction(postcode: &str, town: &str) -> Agreement {
    Agreement::No(Mismatch::Contradiction {
        postcode: postcode.to_owned(),
        town: town.to_owned(),
    })
}

fn elsewhere(place: &str) -> Agreement {
    Agreement::No(Mismatch::OtherPlace(place.to_owned()))
}

#[test]
fn a_place_in_france_is_compared_with_the_query() {
    let paris = geocode_match("48 Rue de Rivoli, 75004 Paris", "75004", "Paris", "FR");
    let areas = ["4e Arrondissement", "Le Marais", "Île-de-France"];
    assert_agreement(
        &paris,
        &areas,
        &[
            ("48 Rue de Rivoli, 75004 Paris", Agreement::Yes),
            ("48 rue de rivoli 75004 PARIS", Agreement::Yes),
            ("48 Rue de Rivoli, 75004, Paris, FR", Agreement::Yes),
            ("48 Rue de Rivoli, Paris 75004, Frankreich", Agreement::Yes),
            ("48 Rue de Rivoli, 75004 PARIS CEDEX 04", Agreement::Yes),
            ("48 Rue de Rivoli, 75004 Le Marais", Agreement::Yes),
            ("48 Rue de Rivoli, 75004", Agreement::Yes),
            ("48 Rue de Rivoli, 75004, 3e étage", Agreement::Yes),
            (
                "48 Rue de Rivoli, étage 3, code 12345, 75004 Paris",
                Agreement::Yes,
            ),
            ("Café du Centre, 48 rue de Rivolli 75004", Agreement::Yes),
            ("48 Rue de Rivoli, Paris", Agreement::Yes),
            ("48 Rue de Rivoli, Lyon", unknown_towns(&["Lyon"])),
            ("48 Rue de Rivoli Lyon", unknown_towns(&["Lyon"])),
            ("48 Rue de Rivoli, Lyon, 2e étage", unknown_towns(&["Lyon"])),
            ("48 Rue de Rivoli", Agreement::Yes),
            ("48 Rue de Rivoli, 3e étage, chez Dupont", Agreement::Yes),
            (
                "Paris Pizza, 48 Rue de Rivoli, Lyon",
                unknown_towns(&["Lyon"]),
            ),
            (
                "Paris, 48 Rue de Rivoli, 75004 Lyon",
                unknown_town("75004", "Lyon"),
            ),
            ("48 Rue de Rivoli, 75000 Paris", Agreement::Yes),
            (
                "48 Rue de Rivoli, 75004 Lyon",
                unknown_town("75004", "Lyon"),
            ),
            ("48 Rue de Rivoli 75004 Lyon", unknown_town("75004", "Lyon")),
            (
                "48 Rue de Rivoli, 75004, Lyon, France",
                unknown_town("75004", "Lyon"),
            ),
            (
                "48 Rue de Rivoli, Lyon 75004",
                unknown_town("75004", "Lyon"),
            ),
            (
                "48 Rue de Rivoli, Lyon, 75004",
                unknown_town("75004", "Lyon"),
            ),
            (
                "48 Rue de Rivoli, 3e étage, 75004 Lyon",
                unknown_town("75004", "Lyon"),
            ),
            (
                "48 Rue de Rivoli, 75004 Rivoli",
                unknown_town("75004", "Rivoli"),
            ),
            (
                "48 Rue de Rivoli, 69001 Paris",
                contradiction("69001", "Paris"),
            ),
            (
                "48 Rue de Rivoli, 75013 Paris",
                contradiction("75013", "Paris"),
            ),
            ("48 Rue de Rivoli, 69001 Lyon", elsewhere("69001 Lyon")),
            ("48 Rue de Rivoli, 69001", elsewhere("69001")),
        ],
    );
}

#[test]
fn a_street_may_have_another_postcode_of_its_town() {
    let street = GeocodeMatch {
        precision: Precision::Street,
        ..geocode_match("Rue de Rivoli, Paris", "75004", "Paris", "FR")
    };
    assert_agreement(
        &street,
        &[],
        &[
            ("Rue de Rivoli, 75001 Paris", Agreement::Yes),
            (
                "Rue de Rivoli, 69001 Paris",
                contradiction("69001", "Paris"),
            ),
            ("Rue de Rivoli, 75001 Lyon", elsewhere("75001 Lyon")),
        ],
    );
}

#[test]
fn a_place_in_another_country_is_compared_by_its_conventions() {
    let london = geocode_match(
        "10 Downing Street, London SW1A 2AA",
        "SW1A 2AA",
        "City of London",
        "GB",
    );
    let westminster = ["Westminster", "Greater London"];
    assert_agreement(
        &london,
        &westminster,
        &[
            ("10 Downing Street, London SW1A 2AA", Agreement::Yes),
            ("10 Downing Street London SW1A 2AA, UK", Agreement::Yes),
            (
                "10 Downing Street, Westminster, London, sw1a 2aa",
                Agreement::Yes,
            ),
            ("10 Downing Street, London SW1A 2AB", Agreement::Yes),
            (
                "10 Downing Street, Liverpool SW1A 2AA",
                unknown_town("SW1A 2AA", "Liverpool"),
            ),
            (
                "10 Downing Street Liverpool, SW1A 2AA",
                unknown_town("SW1A 2AA", "Liverpool"),
            ),
            (
                "10 Downing Street, London EC1A 2AA",
                contradiction("EC1A 2AA", "London"),
            ),
        ],
    );
    let brussels = geocode_match(
        "1 Rue Neuve, 1000 Bruxelles",
        "1000",
        "Bruxelles - Brussel",
        "BE",
    );
    assert_agreement(
        &brussels,
        &[],
        &[
            ("Rue Neuve 1, 1000 Brussel", Agreement::Yes),
            ("Rue Neuve 1, 1000 Bruxelles, Belgien", Agreement::Yes),
            ("Rue Neuve 1, 1000 Brussels", Agreement::Yes),
            ("Rue Neuve 1, 1000 Namur", unknown_town("1000", "Namur")),
        ],
    );
    let new_york = geocode_match(
        "350 5th Avenue, New York, NY 10118",
        "10118",
        "City of New York",
        "US",
    );
    assert_agreement(
        &new_york,
        &["Manhattan"],
        &[
            ("350 5th Ave, New York, NY 10118", Agreement::Yes),
            (
                "350 5th Ave, Manhattan, NY 10118, Estados Unidos",
                Agreement::Yes,
            ),
            (
                "350 5th Ave, Boston, MA 10118",
                unknown_town("10118", "Boston"),
            ),
        ],
    );
}

/// A geocoder whose server answers each query with a list of places.
async fn geocoder(
    answer: impl Fn(&str) -> Value + Send + Sync + 'static,
) -> (HttpGeocoder, TestServer) {
    let server = TestServer::start(move |target, _| {
        let url = url::Url::parse(&format!("http://localhost{target}")).unwrap();
        let query = url.query_pairs().find(|(name, _)| name == "q").unwrap().1;
        Reply::Text(200, answer(&query).to_string())
    })
    .await;
    let spec = HttpGeocoderSpec {
        protocol: Protocol::Nominatim,
        base_url: server.url.clone(),
        options: Options::parse(Protocol::Nominatim, "timeout=20s&rate=1000").unwrap(),
    };
    (HttpGeocoder::new(&spec, "fr", "test").unwrap(), server)
}

fn house(number: &str, street: &str, postcode: &str, town: &str) -> Value {
    json!({
        "lat": "48.85", "lon": "2.35", "category": "place", "addresstype": "place",
        "address": {
            "house_number": number, "road": street, "city": town, "postcode": postcode,
            "country_code": "fr", "country": "France",
        },
    })
}

fn town(name: &str) -> Value {
    json!({
        "lat": "48.85", "lon": "2.35", "category": "boundary", "addresstype": "city",
        "address": { "city": name, "country_code": "fr" },
    })
}

#[tokio::test]
async fn a_merged_commune_keeps_its_name() {
    let (geocoder, server) = geocoder(|_| {
        let mut place = house("9", "Rue de la Mairie", "49120", "Chemillé-en-Anjou");
        place["address"]["village"] = json!("La Tourlandry");
        json!([place])
    })
    .await;

    assert_eq!(
        search(&geocoder, "9 Rue de la Mairie, 49120 La Tourlandry").await,
        "9 Rue de la Mairie, 49120 Chemillé-en-Anjou"
    );
    assert_eq!(server.targets().len(), 1);
}

/// The result of a query in one line.
async fn search(geocoder: &HttpGeocoder, text: &str) -> String {
    match geocoder.geocode(&crate::Query::new(text)).await.unwrap() {
        GeocodeResult::Found(found) => found.formatted,
        GeocodeResult::Partial(partial) => partial.to_string(),
        GeocodeResult::NotFound => "nothing".into(),
    }
}

#[tokio::test]
async fn a_postcode_and_a_town_that_contradict_each_other_are_both_named() {
    let (geocoder, server) = geocoder(|query| match query {
        "Lyon" => json!([town("Lyon")]),
        _ => json!([house("48", "Rue de Rivoli", "75004", "Paris")]),
    })
    .await;

    assert_eq!(
        search(&geocoder, "48 Rue de Rivoli, 75004 Lyon").await,
        "found 48 Rue de Rivoli, 75004 Paris, \
         but the postcode 75004 and the town Lyon contradict each other"
    );
    assert_eq!(server.targets().len(), 2);
    assert_eq!(
        search(&geocoder, "48 Rue de Rivoli, 75004 Paris").await,
        "48 Rue de Rivoli, 75004 Paris"
    );
    assert_eq!(server.targets().len(), 3);
    assert_eq!(
        search(&geocoder, "48 Rue de Rivoli, 69001 Lyon").await,
        "found 48 Rue de Rivoli, 75004 Paris, but not in 69001 Lyon"
    );
}

#[tokio::test]
async fn a_town_may_have_another_name_in_the_query() {
    let (geocoder, _server) = geocoder(|query| match query {
        "Lutetia" => json!([town("Lutèce"), town("Paris")]),
        "Köln" => json!([town("Cologne")]),
        "Bellevue" => json!([house("1", "Bellevue", "69001", "Lyon")]),
        "Nowhere" => json!([]),
        _ => json!([house("48", "Rue de Rivoli", "75004", "Paris")]),
    })
    .await;

    for (town, expected) in [
        ("Lutetia", "48 Rue de Rivoli, 75004 Paris"),
        (
            "Köln",
            "found 48 Rue de Rivoli, 75004 Paris, \
             but the postcode 75004 and the town Köln contradict each other",
        ),
        // No towns.
        ("Bellevue", "48 Rue de Rivoli, 75004 Paris"),
        ("Nowhere", "48 Rue de Rivoli, 75004 Paris"),
    ] {
        let text = format!("48 Rue de Rivoli, 75004 {town}");
        assert_eq!(search(&geocoder, &text).await, expected);
    }
    for (place, expected) in [
        ("Paris", "48 Rue de Rivoli, 75004 Paris"),
        ("Lutetia", "48 Rue de Rivoli, 75004 Paris"),
        (
            "Nowhere, Köln",
            "found 48 Rue de Rivoli, 75004 Paris, but not in Köln",
        ),
        (
            "Köln, Nowhere",
            "found 48 Rue de Rivoli, 75004 Paris, but not in Köln",
        ),
    ] {
        let text = format!("48 Rue de Rivoli, {place}");
        assert_eq!(search(&geocoder, &text).await, expected);
    }
}

#[tokio::test]
async fn the_place_with_the_querys_postcode_is_selected() {
    let (geocoder, _server) = geocoder(|query| match query {
        "Montreuil" => json!([town("Montreuil")]),
        _ => json!([
            house("1", "Rue de Paris", "93100", "Montreuil"),
            house("1", "Rue de Paris", "93260", "Les Lilas"),
        ]),
    })
    .await;

    for (text, expected) in [
        (
            "1 rue de Paris, 93260 Les Lilas",
            "1 Rue de Paris, 93260 Les Lilas",
        ),
        ("1 rue de Paris, 93260", "1 Rue de Paris, 93260 Les Lilas"),
        (
            "1 rue de Paris, 93100 Montreuil",
            "1 Rue de Paris, 93100 Montreuil",
        ),
        (
            "1 rue de Paris, 93260 Montreuil",
            "found 1 Rue de Paris, 93260 Les Lilas, \
             but the postcode 93260 and the town Montreuil contradict each other",
        ),
    ] {
        assert_eq!(search(&geocoder, text).await, expected, "{text}");
    }
}
