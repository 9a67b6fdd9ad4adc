//! Queries with a partial match or without a result, and similar ones with a found address.

use super::*;
use crate::Mismatch;

#[test]
fn a_partial_match_explains_the_mismatch() {
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
        (
            "Paris",
            "found only Paris: add or correct the street and house number",
        ),
        (
            "75004",
            "found only Paris: add or correct the street and house number",
        ),
        (
            "24 rue qui n'existe pas, Paris",
            "found only Paris: add or correct the street and house number",
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
fn a_street_of_several_towns_is_ambiguous_without_a_town() {
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
fn other_countries_are_not_searched() {
    let in_belgium = Query {
        country: Some("BE".into()),
        ..Query::new("24 rue de la Paix, Paris")
    };
    assert_eq!(
        paris().search(&in_belgium).unwrap(),
        GeocodeResult::NotFound
    );
}

#[test]
fn unknown_words_after_the_town_prevent_a_match() {
    let paris = paris();
    for (text, expected) in [
        (
            "24 rue de la Paix, Paris, Texas, USA",
            "found 24 Rue de la Paix, 75002 Paris, but did not understand \"texas usa\"",
        ),
        (
            "24 rue de la Paix, Paris, Île-de-France, France",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24 rue de la Paix, Paris, 3e étage, Sylvie",
            "24 Rue de la Paix, 75002 Paris",
        ),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
}

#[test]
fn a_wrong_postcode_of_the_right_town_is_corrected_and_reported() {
    // Other streets of the town have 75004, and none has 75000.
    for wrong in ["75000", "75004"] {
        let result = found(&paris(), &format!("24 rue de la Paix, {wrong} Paris"));

        let reason = format!("the postcode is 75002, not {wrong}");
        assert!(result.reasons.contains(&reason), "{:?}", result.reasons);
        assert!(result.confidence < 0.8, "{}", result.confidence);
    }
}

#[test]
fn a_postcode_of_another_town_with_the_same_address_is_a_contradiction() {
    assert_eq!(
        search(&towns(), "1 rue de Paris, 93260 Montreuil"),
        "found 1 Rue de Paris, 93100 Montreuil; 1 Rue de Paris, 93260 Les Lilas, \
         but the postcode 93260 and the town Montreuil contradict each other"
    );
}

/// Checks that a text names a postcode and a town that contradict each other.
fn assert_contradiction(gazetteer: &Gazetteer, text: &str, found: &str, named: (&str, &str)) {
    let (postcode, town) = named;
    let expected = format!(
        "found {found}, but the postcode {postcode} and the town {town} contradict each other"
    );
    assert_eq!(search(gazetteer, text), expected, "{text}");
}

#[test]
fn a_postcode_and_a_town_that_contradict_each_other_are_both_named() {
    let paris = paris();
    // Lyon is not in the data, Puteaux is.
    for (place, postcode, town) in [
        ("75004 Lyon", "75004", "Lyon"),
        ("75004 LYON", "75004", "LYON"),
        ("75004, Lyon", "75004", "Lyon"),
        ("Lyon 75004", "75004", "Lyon"),
        ("Lyon, 75004", "75004", "Lyon"),
        ("75004 Lyon, France", "75004", "Lyon"),
        ("75004 Saint-Étienne", "75004", "Saint Étienne"),
        ("3e étage, 75004 Lyon", "75004", "Lyon"),
        ("75004 Puteaux", "75004", "Puteaux"),
        ("69001 Paris", "69001", "Paris"),
    ] {
        let text = format!("48 Rue de Rivoli, {place}");
        let found = "48 Rue de Rivoli, 75004 Paris";
        assert_contradiction(&paris, &text, found, (postcode, town));
    }
    let towns = towns();
    assert_contradiction(
        &towns,
        "1 rue de Paris, 93100 Lille",
        "1 Rue de Paris, 93100 Montreuil; 1 Rue de Paris, 59000 Lille",
        ("93100", "Lille"),
    );
    // Neither town has this house.
    assert_contradiction(
        &towns,
        "12 rue de Paris, 93260 Montreuil",
        "Rue de Paris, Montreuil; Rue de Paris, Les Lilas",
        ("93260", "Montreuil"),
    );
}

#[test]
fn a_postcode_and_a_town_without_a_street_may_contradict_each_other() {
    for (gazetteer, text, found, named) in [
        (
            towns(),
            "93260 Montreuil",
            "Montreuil",
            ("93260", "Montreuil"),
        ),
        (paris(), "75004 Grenoble", "Paris", ("75004", "Grenoble")),
    ] {
        assert_contradiction(&gazetteer, text, found, named);
        let town_suffices = Query {
            required: Precision::Locality,
            ..Query::new(text)
        };
        let result = gazetteer.search(&town_suffices).unwrap();
        assert!(
            matches!(result, GeocodeResult::Partial(_)),
            "{text}: {result:?}"
        );
    }
}

#[test]
fn a_part_of_the_name_of_the_postcodes_town_is_no_contradiction() {
    let csv = "id;numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
        a;10;;Rue X;92100;Boulogne-Billancourt;2.2400;48.8400\n\
        b;10;;Rue X;75001;Paris;2.3400;48.8600\n";
    let gazetteer = gazetteer_of("FR", csv);
    for place in [
        "92100 Boulogne",
        "92100, BOULOGNE",
        "Boulogne 92100",
        "Boulogne, 92100, France",
        "Résidence Bleue, 92100 Billancourt",
    ] {
        assert_eq!(
            search(&gazetteer, &format!("10 Rue X, {place}")),
            "10 Rue X, 92100 Boulogne-Billancourt",
            "{place}"
        );
    }
    assert_eq!(
        search(&gazetteer, "10 Rue Inconnue, 92100 Boulogne"),
        "found only Boulogne-Billancourt: add or correct the street and house number"
    );
    assert_contradiction(
        &gazetteer,
        "10 Rue X, 92100 Boul",
        "10 Rue X, 92100 Boulogne-Billancourt",
        ("92100", "Boul"),
    );
}

#[test]
fn the_postcodes_town_may_have_a_name_in_another_language() {
    let csv = "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n\
        4.3570,50.8520,1,Rue Neuve,Bruxelles/Brussel,1000\n\
        4.4000,51.2200,1,Meir,Antwerpen,2000\n\
        4.8670,50.4640,1,Rue de Fer,Namur,5000\n";
    let belgium = gazetteer_of("BE", csv);
    for place in [
        "1000 Brussels",
        "1000 BRUSSEL",
        "1000 Bruxelles",
        "1000 Brüssel",
        "1000 Bruselas, Bélgica",
        "Brussels 1000",
        "1000, Brussels, Belgium",
    ] {
        let text = format!("Rue Neuve 1, {place}");
        assert_eq!(
            search(&belgium, &text),
            "Rue Neuve 1, 1000 Bruxelles/Brussel",
            "{text}"
        );
    }
    assert_eq!(
        search(&belgium, "Meir 1, 2000 Anvers"),
        "Meir 1, 2000 Antwerpen"
    );
    assert_eq!(
        search(&belgium, "Rue Inconnue 1, 2000 Antwerp"),
        "found only Antwerpen: add or correct the street and house number"
    );
    for town in ["Namur", "Anvers", "Cologne"] {
        assert_contradiction(
            &belgium,
            &format!("Rue Neuve 1, 1000 {town}"),
            "Rue Neuve 1, 1000 Bruxelles/Brussel",
            ("1000", town),
        );
    }
}

#[test]
fn an_unknown_postcode_of_another_region_contradicts_the_town() {
    let columns = "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n";
    for (country, row, text, found, named) in [
        (
            "NL",
            "4.8926,52.3731,1,Dam,Amsterdam,1012JS",
            "Dam 1, 9999 XX Amsterdam",
            "Dam 1, 1012JS Amsterdam",
            ("9999 XX", "Amsterdam"),
        ),
        (
            "NL",
            "4.8926,52.3731,1,Dam,Amsterdam,1012JS",
            "Dam 1, 9999XX Amsterdam",
            "Dam 1, 1012JS Amsterdam",
            ("9999XX", "Amsterdam"),
        ),
        (
            "BE",
            "4.4000,51.2200,1,Meir,Antwerpen,2000",
            "Meir 1, 9999 Antwerpen",
            "Meir 1, 2000 Antwerpen",
            ("9999", "Antwerpen"),
        ),
        (
            "CH",
            "8.5390,47.3690,1,Bahnhofstrasse,Zürich,8001",
            "Bahnhofstrasse 1, 9999 Zürich",
            "Bahnhofstrasse 1, 8001 Zürich",
            ("9999", "Zürich"),
        ),
    ] {
        let gazetteer = gazetteer_of(country, &format!("{columns}{row}\n"));
        assert_contradiction(&gazetteer, text, found, named);
    }
}

#[test]
fn a_town_may_be_in_the_index_under_its_names_in_two_languages() {
    let csv = "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n\
        4.3570,50.8520,1,Rue Neuve,Bruxelles,1000\n\
        4.3580,50.8530,1,Kiekenmarkt,Brussel,1000\n\
        4.8670,50.4640,1,Rue de Fer,Namur,5000\n";
    let belgium = gazetteer_of("BE", csv);
    for place in ["1000 Brussel", "Brussel", "1000 Bruxelles", "1000 Brussels"] {
        let text = format!("Rue Neuve 1, {place}");
        assert_eq!(
            search(&belgium, &text),
            "Rue Neuve 1, 1000 Bruxelles",
            "{text}"
        );
    }
    assert_contradiction(
        &belgium,
        "Rue Neuve 1, 1000 Namur",
        "Rue Neuve 1, 1000 Bruxelles",
        ("1000", "Namur"),
    );
}

#[test]
fn a_postcode_without_a_town_is_enough() {
    let paris = paris();
    for text in [
        "48 Rue de Rivoli, 75004",
        "48 Rue de Rivoli, 75004, France",
        "48 Rue de Rivoli, 75004, 3e étage, chez Dupont",
        "Chez Lyonnais, 48 Rue de Rivoli, 75004",
        "48 Rue de Rivoli, 75004 Paris, 3e étage, Lyon",
        "48 Rue de Rivoli, 75004 Paris 4e Arrondissement",
        "48 Rue de Rivoli, 75004 PARIS CEDEX 04",
    ] {
        assert_eq!(
            search(&paris, text),
            "48 Rue de Rivoli, 75004 Paris",
            "{text}"
        );
    }
}

#[test]
fn the_country_may_be_written_in_another_language() {
    let paris = paris();
    for country in ["France", "FRANCIA", "Frankreich", "Frankrijk", "FR"] {
        for text in [
            format!("48 Rue de Rivoli, 75004 Paris, {country}"),
            format!("48 Rue de Rivoli, Paris {country}"),
            format!("48 Rue de Rivoli, 75004, {country}"),
        ] {
            assert_eq!(
                search(&paris, &text),
                "48 Rue de Rivoli, 75004 Paris",
                "{text}"
            );
        }
    }
    assert_eq!(
        search(&paris, "48 Rue de Rivoli, Paris, Alemania"),
        "found 48 Rue de Rivoli, 75004 Paris, but did not understand \"alemania\""
    );
}

#[test]
fn a_name_with_additional_words_is_another_street() {
    let paris = paris();
    for text in [
        "24 rue de la Paix Dorée, Paris",
        "24 petite rue de la Paix, Paris",
        "24 avenue de la Paix, Paris",
    ] {
        let result = result(&paris, text);
        let GeocodeResult::Partial(partial) = &result else {
            panic!("{text}: {result:?}");
        };
        assert_eq!(partial.mismatch, Mismatch::Street, "{text}");
    }
}
