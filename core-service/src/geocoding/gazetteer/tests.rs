//! Searches in a gazetteer.

use super::*;
use crate::geocoding::{Found, Missing};

fn paris() -> Gazetteer {
    Gazetteer::embedded().unwrap()
}

fn towns() -> Gazetteer {
    let csv = "id;numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
        a;1;;Rue de Paris;93100;Montreuil;2.4366;48.8570\n\
        b;1;;Rue de Paris;93260;Les Lilas;2.4140;48.8790\n\
        c;1;;Rue de Paris;59000;Lille;3.0640;50.6340\n\
        d;12;;Rue de Paris;59000;Lille;3.0645;50.6335\n\
        e;12;bis;Rue de Paris;59000;Lille;3.0646;50.6334\n";
    Gazetteer::from_ban(csv.as_bytes()).unwrap()
}

/// What a search gives, in a line.
fn search(gazetteer: &Gazetteer, text: &str) -> String {
    match gazetteer.search(&Query::new(text)) {
        Answer::Found(found) => found.formatted,
        Answer::Unclear(unclear) => unclear.to_string(),
        Answer::NotFound => "nothing".into(),
    }
}

#[test]
fn an_address_is_found_whole() {
    let answer = paris().search(&Query::new("24 Rue de la Paix, 75002 Paris"));

    assert_eq!(
        answer,
        Answer::Found(Found {
            formatted: "24 Rue de la Paix, 75002 Paris".into(),
            postal_code: Some("75002".into()),
            locality: Some("Paris".into()),
            country: Some("FR".into()),
            lat_lng: LatLng::new(48.87008, 2.33144).unwrap(),
            precision: Precision::House,
        })
    );
}

#[test]
fn an_address_is_found_however_it_is_written() {
    let paris = paris();
    for (text, expected) in [
        ("24, Rue de la Paix Paris", "24 Rue de la Paix, 75002 Paris"),
        ("24 rue de la paix", "24 Rue de la Paix, 75002 Paris"),
        (
            "24 RUE DE LA PAIX PARIS FRANCE",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24, r. de la Paix, 75002 Paris, France",
            "24 Rue de la Paix, 75002 Paris",
        ),
        ("24 rue paix 75002", "24 Rue de la Paix, 75002 Paris"),
        ("Rue de la Paix 24, Paris", "24 Rue de la Paix, 75002 Paris"),
        (
            "24 rue de la Paix, Paris 2e",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24 rue de la Paix, 75000 Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24-26 rue de la Paix, Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "Chez Sylvie, 24 rue de la Paix, Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "Appt 10, 24 rue de la Paix, Paris",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24 rue de la Paix, 3e étage, code 1234",
            "24 Rue de la Paix, 75002 Paris",
        ),
        ("101 Rue de la Paix", "101 Rue de la Paix, 75002 Paris"),
        ("44 rue de rivoli", "44 Rue de Rivoli, 75004 Paris"),
        ("48, Rue de Rivoli Paris", "48 Rue de Rivoli, 75004 Paris"),
        ("52 Rue de Rivoli", "52 Rue de Rivoli, 75004 Paris"),
        ("64 Rue de Rivoli", "64 Rue de Rivoli, 75004 Paris"),
        ("45 rue d’ulm paris", "45 Rue d'Ulm, 75005 Paris"),
        (
            "272, rue St Honore 75001 PARIS",
            "272 Rue Saint-Honoré, 75001 Paris",
        ),
        (
            "55 rue du fbg St-Honoré",
            "55 Rue du Faubourg Saint-Honoré, 75008 Paris",
        ),
        (
            "99 av des champs elysees",
            "99 Avenue des Champs-Élysées, 75008 Paris",
        ),
        (
            "116bis av. des Champs-Élysées",
            "116 bis Avenue des Champs-Élysées, 75008 Paris",
        ),
        (
            "116 BIS avenue des Champs-Élysées",
            "116 bis Avenue des Champs-Élysées, 75008 Paris",
        ),
        (
            "1 pl. du 11 novembre 1918",
            "1 Place du 11 Novembre 1918, 75010 Paris",
        ),
        (
            "6 parvis Notre-Dame",
            "6 Parvis Notre-Dame - Place Jean-Paul II, 75004 Paris",
        ),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
}

#[test]
fn what_is_not_good_enough_says_what_was_found() {
    let paris = paris();
    for (text, expected) in [
        (
            "480 rue de Rivoli, Paris",
            "found Rue de Rivoli, Paris, but no number 480",
        ),
        (
            "480 bis rue de Rivoli",
            "found Rue de Rivoli, Paris, but no number 480 bis",
        ),
        (
            "rue de Rivoli",
            "found Rue de Rivoli, Paris; the house number is missing",
        ),
        ("Paris", "found Paris, but not the street"),
        ("75004", "found Paris, but not the street"),
        (
            "24 rue qui n'existe pas, Paris",
            "found Paris, but not the street",
        ),
        (
            "24 rue de la Paix, Lyon",
            "found 24 Rue de la Paix, 75002 Paris, but did not understand \"lyon\"",
        ),
        (
            "24 rue de la Paix, 69002 Lyon",
            "found 24 Rue de la Paix, 75002 Paris, but not in 69002",
        ),
        (
            "24 rue de la Paix, Puteaux",
            "found 24 Rue de la Paix, 75002 Paris, but not in Puteaux",
        ),
        ("10 Downing Street, London", "nothing"),
        ("", "nothing"),
        ("é\u{301}\u{0} ;", "nothing"),
        (
            "99999999999999999999 rue de Rivoli",
            "found Rue de Rivoli, Paris; the house number is missing",
        ),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
}

#[test]
fn a_street_of_several_towns_needs_one_of_them() {
    let towns = towns();
    for (text, expected) in [
        (
            "1 rue de Paris",
            "found 1 Rue de Paris, 93100 Montreuil; 1 Rue de Paris, 93260 Les Lilas; \
             1 Rue de Paris, 59000 Lille; the town or its postcode is missing",
        ),
        ("1 rue de Paris, Lille", "1 Rue de Paris, 59000 Lille"),
        ("1 rue de Paris, 93260", "1 Rue de Paris, 93260 Les Lilas"),
        ("12 rue de Paris", "12 Rue de Paris, 59000 Lille"),
        ("12A rue de Paris, Lille", "12A Rue de Paris, 59000 Lille"),
        (
            "12 ter rue de Paris, Lille",
            "12 ter Rue de Paris, 59000 Lille",
        ),
    ] {
        assert_eq!(search(&towns, text), expected, "{text}");
    }
}

#[test]
fn the_area_of_who_asks_decides_between_towns() {
    let near_lille = Query {
        near: Some(LatLng::new(50.62, 3.05).unwrap()),
        ..Query::new("1 rue de Paris")
    };
    let Answer::Found(found) = towns().search(&near_lille) else {
        panic!("one of the towns is near");
    };
    assert_eq!(found.locality.as_deref(), Some("Lille"));
}

#[test]
fn a_house_that_differs_in_its_suffix_is_interpolated() {
    let demanding = Query {
        demand: Precision::House,
        ..Query::new("12A rue de Paris, Lille")
    };
    let Answer::Unclear(unclear) = towns().search(&demanding) else {
        panic!("12A is not known");
    };
    assert_eq!(unclear.missing, Missing::HouseNumber(Some("12A".into())));
    assert_eq!(unclear.candidates[0].precision, Precision::Interpolated);
}

#[test]
fn other_countries_are_not_searched() {
    let in_belgium = Query {
        country: Some("BE".into()),
        ..Query::new("24 rue de la Paix, Paris")
    };
    assert_eq!(paris().search(&in_belgium), Answer::NotFound);
}

#[test]
fn latitude_and_longitude_are_not_swapped() {
    let csv =
        "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n1;;Rue X;75001;Paris;48.8;2.3\n";
    let gazetteer = Gazetteer::from_ban(csv.as_bytes()).unwrap();
    let Answer::Found(found) = gazetteer.search(&Query::new("1 rue x")) else {
        panic!("the only house is found");
    };
    assert_eq!(found.lat_lng, LatLng::new(2.3, 48.8).unwrap());

    let off_earth = csv.replace("2.3\n", "97\n");
    assert!(matches!(
        Gazetteer::from_ban(off_earth.as_bytes()),
        Err(GazetteerError::Point { row: 1, .. })
    ));
}

proptest::proptest! {
    #[test]
    fn any_text_is_answered(text in "(\\PC| |[0-9]|rue|bis|paris|rivoli|de|,){0,60}") {
        paris().search(&Query::new(text));
    }
}
