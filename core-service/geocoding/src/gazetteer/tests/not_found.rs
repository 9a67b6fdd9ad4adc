//! Queries with a partial match or without a result.

use super::*;
use crate::{Mismatch, Reason};

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
    let result = found(&paris(), "24 rue de la Paix, 75000 Paris");

    let reason = Reason::Postcode {
        written: "75000".into(),
        known: "75002".into(),
    };
    assert!(result.reasons.contains(&reason), "{:?}", result.reasons);
    assert!(result.confidence < 0.8, "{}", result.confidence);
}

#[test]
fn a_postcode_of_another_town_with_the_same_address_is_ambiguous() {
    assert_eq!(
        search(&towns(), "1 rue de Paris, 93260 Montreuil"),
        "found 1 Rue de Paris, 93100 Montreuil; 1 Rue de Paris, 93260 Les Lilas; \
         the town or its postcode is missing"
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
