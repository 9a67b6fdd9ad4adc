//! Queries with a found address.

use super::*;
use crate::Mismatch;

#[test]
fn a_complete_address_is_found() {
    let paris = paris();
    let result = result(&paris, "24 Rue de la Paix, 75002 Paris");

    assert_eq!(
        result,
        GeocodeResult::Found(GeocodeMatch {
            formatted: "24 Rue de la Paix, 75002 Paris".into(),
            postal_code: Some("75002".into()),
            locality: Some("Paris".into()),
            country: Some("FR".into()),
            lat_lng: LatLng::new(48.87008, 2.33144).unwrap(),
            precision: Precision::House,
            confidence: 1.0,
            is_in_nearest_town: false,
            reasons: [
                "house number: 24",
                "street: Rue Paix",
                "town: Paris",
                "postcode: 75002"
            ]
            .map(str::to_owned)
            .into(),
        })
    );
}

#[test]
fn an_address_is_found_in_many_spellings() {
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
        (
            "24 rue de la Paix, Paris 2ème arrondissement",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "BP 12, 24 rue de la Paix, 75002 PARIS CEDEX 02",
            "24 Rue de la Paix, 75002 Paris",
        ),
        (
            "24 rue de la Paix, 75002 Paris, rez-de-chaussée gauche, sonner chez Dupont",
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
fn any_postcode_of_a_street_is_recognized_in_its_punctuation() {
    for (first, second) in [("00-950", "00-238"), ("SW1A 2AA", "SW1A 1AA")] {
        let csv = format!(
            "LON,LAT,NUMBER,STREET,CITY,POSTCODE\n\
             21.00,52.20,1,Long Street,Warszawa,{first}\n\
             21.01,52.21,5,Long Street,Warszawa,{second}\n"
        );
        let gazetteer = gazetteer_of("PL", &csv);
        for (number, postcode) in [(1, first), (5, second)] {
            let found = found(
                &gazetteer,
                &format!("{number} Long Street, Warszawa {postcode}"),
            );

            let formatted = format!("{number} Long Street, Warszawa {postcode}");
            let reasons = found.reasons;
            let is_corrected = reasons
                .iter()
                .any(|reason| reason.starts_with("the postcode is"));
            assert_eq!(
                (found.formatted, is_corrected),
                (formatted, false),
                "{reasons:?}"
            );
        }
    }
}

#[test]
fn the_nearest_of_several_towns_is_chosen() {
    let near_lille = Query {
        near: Some(LatLng::new(50.62, 3.05).unwrap()),
        ..Query::new("1 rue de Paris")
    };
    let GeocodeResult::Found(nearest) = towns().search(&near_lille).unwrap() else {
        panic!("one of the towns is nearby");
    };
    assert_eq!(nearest.locality.as_deref(), Some("Lille"));
    assert!(nearest.confidence < found(&towns(), "1 rue de Paris, Lille").confidence);
}

#[test]
fn a_town_that_the_fields_of_an_address_repeat_is_understood() {
    let paris = paris();
    for fields in [
        "Paris",
        "75002, Paris",
        "PARIS 02",
        "France, 75002, Paris",
        "France, Paris, France",
    ] {
        let text = format!("24 Rue de la Paix, 75002 Paris, {fields}");

        assert_eq!(
            search(&paris, &text),
            "24 Rue de la Paix, 75002 Paris",
            "{text}"
        );
    }
    assert_eq!(
        search(&paris, "24 Rue de la Paix, 75002 Paris, Lyon, Paris"),
        "found 24 Rue de la Paix, 75002 Paris, but did not understand \"lyon\""
    );
}

#[test]
fn a_town_in_the_name_of_a_street_is_not_the_town_of_the_address() {
    let csv = "id;numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
        a;1;;Rue de Paris;59000;Lille;3.0640;50.6340\n\
        b;1;;Rue X;75001;Paris;2.3400;48.8600\n";

    assert_eq!(
        search(&gazetteer_of("FR", csv), "1 rue de Paris, 59000"),
        "1 Rue de Paris, 59000 Lille"
    );
}

#[test]
fn unknown_words_that_do_not_follow_the_town_only_reduce_the_confidence() {
    let paris = paris();
    let certain = found(&paris, "24 Rue de la Paix, 75002 Paris").confidence;
    for text in [
        "24 Rue de la Paix, Tartempion, 75002 Paris",
        "75002 Paris, Tartempion, 24 Rue de la Paix",
        "75002 Paris, 24 Rue de la Paix, Tartempion",
    ] {
        let found = found(&paris, text);

        assert_eq!(found.formatted, "24 Rue de la Paix, 75002 Paris", "{text}");
        let ignored = r#"ignored "Tartempion""#.to_owned();
        assert!(found.reasons.contains(&ignored), "{:?}", found.reasons);
        assert!(found.confidence < certain, "{text}");
    }
}

#[test]
fn a_spelling_error_is_corrected_and_reported() {
    let paris = paris();
    for (text, expected) in [
        ("24 rue de la Piax, Paris", "24 Rue de la Paix, 75002 Paris"),
        // A word of three letters is not corrected.
        (
            "24 reu de la Paix, 75002",
            "found only Paris: add or correct the street and house number",
        ),
        ("48 rue de Rivolli, Pariss", "48 Rue de Rivoli, 75004 Paris"),
        (
            "99 Champs Elisées, Paris",
            "99 Avenue des Champs-Élysées, 75008 Paris",
        ),
        ("24 rue de la Paie, Paris", "24 Rue de la Paix, 75002 Paris"),
    ] {
        assert_eq!(search(&paris, text), expected, "{text}");
    }
    let misspelt = found(&paris, "48 rue de Rivolli, Pariss");
    for reason in [
        r#"corrected "Rivolli" to "rivoli""#,
        r#"corrected "Pariss" to "Paris""#,
    ] {
        assert!(
            misspelt.reasons.iter().any(|found| found == reason),
            "{:?}",
            misspelt.reasons
        );
    }
    assert!(misspelt.confidence < found(&paris, "48 rue de Rivoli, Paris").confidence);
}

#[test]
fn a_house_that_differs_in_its_suffix_is_interpolated() {
    let exact = Query {
        required: Precision::House,
        ..Query::new("12A rue de Paris, Lille")
    };
    let GeocodeResult::Partial(partial) = towns().search(&exact).unwrap() else {
        panic!("12A is not known");
    };
    assert_eq!(partial.mismatch, Mismatch::HouseNumber(Some("12A".into())));
    assert_eq!(partial.candidates[0].precision, Precision::Interpolated);
    assert_eq!(
        partial.to_string(),
        "found 12A Rue de Paris, 59000 Lille, but its position is only estimated"
    );
}

#[test]
fn a_house_between_its_neighbours_is_interpolated_and_marked() {
    let gazetteer = gazetteer_of("FR", STREET_WITH_GAPS);

    let between = found(&gazetteer, "4 rue X, Paris");

    assert_eq!(between.lat_lng, LatLng::new(48.8, 2.3002).unwrap());
    assert_eq!(between.precision, Precision::Interpolated);
    assert!(between.confidence < found(&gazetteer, "2 rue X, Paris").confidence);
    assert_eq!(
        between.reasons.last().map(String::as_str),
        Some("between 2 and 10")
    );
    // Its neighbours are seven kilometres apart.
    assert_eq!(
        search(&gazetteer, "50 rue X, Paris"),
        "found Rue X, Paris, but no number 50"
    );
    // It has no higher neighbour.
    assert_eq!(
        search(&gazetteer, "92 rue X, Paris"),
        "found Rue X, Paris, but no number 92"
    );
}

#[test]
fn any_text_is_searched_without_an_error() {
    let paris = paris();
    let texts = "(\\PC| |[0-9]|rue|bis|paris|rivoli|de|,){0,60}";
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&texts, |text| {
            paris.search(&Query::new(text)).unwrap();
            Ok(())
        })
        .unwrap();
}
