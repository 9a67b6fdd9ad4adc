//! `delivery addresses`: import and search.

use std::fs;

use serde_json::json;

use crate::harness::all_in_one::{AllInOne, stderr};

const LILLE: &str = "numero;rep;nom_voie;code_postal;nom_commune;lon;lat\n\
    12;;Rue de Gand;59000;Lille;3.0640;50.6430\n\
    14;bis;Rue de Gand;59000;Lille;3.0641;50.6431\n\
    ;;Rue de Gand;59000;Lille;3.0641;50.6431\n";

#[test]
fn imported_addresses_are_usable_without_a_restart() {
    let running = AllInOne::start_new(&[]);
    let data_dir = running.data_dir();
    let file = data_dir.join("lille.csv");
    fs::write(&file, LILLE).unwrap();
    let file = file.to_str().unwrap();
    let draft =
        json!({ "dropoff": { "address": "12, r. de Gand, LILLE", "before": "tomorrow 13:00" } })
            .to_string();
    let before = running.call("/api/deliveries", &["-d", &draft]);
    assert_eq!(before["violations"][0]["propertyPath"], "dropoff.address");

    let imported = running.run_json(&["addresses", "import", file]);

    assert_eq!(
        imported,
        json!({
            "imported": 2,
            "skipped": [{ "reason": "no house number", "count": 1, "first": format!("{file}:4") }],
        })
    );
    let after = running.call("/api/deliveries", &["-d", &draft]);
    assert_eq!(
        after["dropoff"]["address"]["streetAddress"],
        "12 Rue de Gand, 59000 Lille"
    );

    let broken = data_dir.join("broken.csv");
    fs::write(&broken, "a;b\n1;2\n").unwrap();
    let rejected = running.run(&["addresses", "import", file, broken.to_str().unwrap()]);
    assert_eq!(rejected.status.code(), Some(1));
    assert!(
        stderr(&rejected).contains("the column lon is missing"),
        "{}",
        stderr(&rejected)
    );
    let missing = running.run(&["addresses", "import", file, "not there"]);
    assert_eq!(missing.status.code(), Some(1));
    let unchanged = running.call("/api/deliveries", &["-d", &draft]);
    assert_eq!(
        unchanged["dropoff"]["address"]["geo"],
        after["dropoff"]["address"]["geo"]
    );
}

#[test]
fn an_import_that_nothing_will_use_says_so() {
    let running = AllInOne::start_new(&["--geocoder=none"]);
    let file = running.data_dir().join("lille.csv");
    fs::write(&file, LILLE).unwrap();

    let imported = running.run(&["addresses", "import", file.to_str().unwrap()]);

    assert!(imported.status.success());
    assert_eq!(
        stderr(&imported),
        "nothing will use these addresses: start the core with --geocoder gazetteer, alone or with others\n"
    );
}

#[test]
fn a_search_reports_how_a_text_was_parsed_or_what_was_not_found() {
    let running = AllInOne::start_new(&[]);

    let found = running.run_json(&["addresses", "search", "48 rue de Rivolli, 75004 Paris"]);
    assert_eq!(
        found,
        json!({
            "found": {
                "address": "48 Rue de Rivoli, 75004 Paris",
                "postal_code": "75004",
                "locality": "Paris",
                "country": "FR",
                "lat_lng": found["found"]["lat_lng"],
                "precision": "house",
                "confidence": 0.92,
                "reasons": [
                    "house number: 48",
                    "street: rue Rivolli",
                    "corrected \"Rivolli\" to \"rivoli\"",
                    "town: Paris",
                    "postcode: 75004",
                ],
            },
            "not_found_reason": null,
            "candidates": [],
        })
    );

    let store = format!("--store={}", running.text("/store"));
    let unclear = running.run(&["addresses", "search", "4800 rue de Rivoli", &store]);
    assert_eq!(unclear.status.code(), Some(1));
    assert_eq!(
        stderr(&unclear),
        "found Rue de Rivoli, Paris, but no number 4800\n"
    );
    let shown = String::from_utf8(unclear.stdout).unwrap();
    for expected in [
        "\nRue de Rivoli, Paris  ",
        "  street     0.9         ",
        "no town is given: the town nearest to the store was chosen\n",
    ] {
        assert!(shown.contains(expected), "{expected:?} is not in {shown}");
    }
}

/// The reasons let an operator explain a match to a shop.
#[test]
fn a_search_reports_its_reasons() {
    let running = AllInOne::start_new(&[]);

    for (text, status, shown) in [
        (
            "24 rue de la Paix, 75000 Paris",
            0,
            "address                         location          precision  confidence  reasons\n\
             24 Rue de la Paix, 75002 Paris  48.87008,2.33144  house      0.7         \
             house number: 24; street: rue Paix; town: Paris; \
             the postcode is 75002, not 75000\n",
        ),
        (
            "Chez Sylvie, 50 rue de Rivoli, Paris",
            0,
            "address                        location          precision     confidence  reasons\n\
             50 Rue de Rivoli, 75004 Paris  48.85728,2.35378  interpolated  0.81        \
             house number: 50; street: rue Rivoli; town: Paris; \
             ignored \"Sylvie\"; between 48 and 52\n",
        ),
        (
            "24 rue de la Paix, Paris, Texas, USA",
            1,
            "address                         location          precision  confidence  reasons\n\
             24 Rue de la Paix, 75002 Paris  48.87008,2.33144  house      1.0         \
             house number: 24; street: rue Paix; town: Paris\n",
        ),
    ] {
        let searched = running.run(&["addresses", "search", text]);
        assert_eq!(searched.status.code(), Some(status), "{text}");
        assert_eq!(String::from_utf8_lossy(&searched.stdout), shown, "{text}");
        let expected_error = match status {
            0 => "",
            _ => "found 24 Rue de la Paix, 75002 Paris, but did not understand \"texas usa\"\n",
        };
        assert_eq!(stderr(&searched), expected_error, "{text}");
    }
}
