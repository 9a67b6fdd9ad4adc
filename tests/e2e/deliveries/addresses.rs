//! The address of a task: strings, address objects, coordinates, telephones ("Address object").

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{draft, draft_with};
use crate::harness::{Database, Mismatches, Platform, assertions::assert_violations};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_string_is_geocoded_regardless_of_case_accents_and_commas() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut points = BTreeSet::new();
    let known = [
        ("24", "24 Rue de la Paix", "75002"),
        ("101", "101 Rue de la Paix", ""),
        ("44", "44 Rue de Rivoli", "75004"),
        ("48", "48 Rue de Rivoli", "75004"),
        ("52", "52 Rue de Rivoli", "75004"),
        ("64", "64 Rue de Rivoli", "75004"),
        ("45", "45 Rue d'Ulm", "75005"),
        ("272", "272 Rue Saint-Honoré", "75001"),
    ];
    let mut mismatches = Mismatches::default();

    for (number, street, postcode) in known {
        let mut found = BTreeSet::new();
        let mut spellings = vec![
            street.to_owned(),
            format!("{street}, Paris"),
            format!("{street} Paris"),
            street.to_uppercase(),
            format!("{}, PARIS", street.to_uppercase()),
            street.to_lowercase().replace('é', "e"),
            street.replacen(' ', ", ", 1),
            format!("  {}  ", street.replace(' ', "  ")),
            // A combining accent, and a typographic apostrophe.
            street.replace('é', "e\u{301}"),
            street.replace('\'', "’"),
            // Marks that are displayed as nothing, as in a text copied from a page.
            format!("\u{202a}{}\u{202c}", street.replace(' ', "\u{200b} \u{ad}")),
        ];
        if !postcode.is_empty() {
            spellings.push(format!("{street}, {postcode} Paris"));
            spellings.push(format!("{street} {postcode} paris"));
            spellings.push(format!("{street}, {postcode}"));
            spellings.push(format!("{street}, {postcode} Paris, France"));
        }
        for spelling in spellings {
            let draft = draft_with("dropoff.address", json!(spelling));
            let response = client.post("/api/deliveries", draft).await;

            if response.status != 201 {
                mismatches.check_eq(&spelling, response.status, 201);
                continue;
            }
            let address = &response.json["dropoff"]["address"];
            found.insert((
                address["streetAddress"].to_string(),
                address["geo"].to_string(),
            ));
            let text = address["streetAddress"].as_str().unwrap();
            mismatches.check(&spelling, text.starts_with(number), text);
        }
        // "Replaced by the geocoder's formatted one": the same text and coordinates for all.
        mismatches.check_eq(street, found.len(), 1);
        points.extend(found.into_iter().map(|(_, geo)| geo));
    }
    mismatches.check_eq("points", points.len(), known.len());

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_with_coordinates_keeps_them_and_its_text_and_one_without_is_geocoded() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let by_text = client.create_delivery(draft()).await;
    let geocoded = by_text["dropoff"]["address"]["geo"].clone();
    let point = |latitude: f64, longitude: f64| json!({ "@type": "GeoCoordinates", "latitude": latitude, "longitude": longitude });
    let text = " 48 rue de rivoli, behind the  CHURCH ";
    let mut mismatches = Mismatches::default();

    for (mut address, expected) in [
        (
            json!({ "latLng": [48.856_614, 2.352_221_9] }),
            point(48.856_614, 2.352_221_9),
        ),
        (
            json!({ "latLng": [48.123_456_789_012_345, 2.1] }),
            point(48.123_456_789_012_345, 2.1),
        ),
        (json!({ "latLng": [49, 2] }), point(49.0, 2.0)),
        (
            json!({ "geo": { "latitude": 48.85, "longitude": 2.35 } }),
            point(48.85, 2.35),
        ),
        (
            json!({ "latLng": null, "geo": { "@type": "GeoCoordinates", "latitude": 48.85, "longitude": 2.35 } }),
            point(48.85, 2.35),
        ),
        (
            json!({ "latLng": [48.86, 2.36], "geo": { "latitude": 48.86, "longitude": 2.36 } }),
            point(48.86, 2.36),
        ),
    ] {
        let case = address.to_string();
        address["streetAddress"] = json!(text);
        let response = client
            .post("/api/deliveries", draft_with("dropoff.address", address))
            .await;

        mismatches.check_eq(&case, response.status, 201);
        let returned = &response.json["dropoff"]["address"];
        for coordinate in ["latitude", "longitude"] {
            let [got, expected] = [&returned["geo"], &expected].map(|geo| geo[coordinate].as_f64());
            mismatches.check_eq(&case, got, expected);
        }
        mismatches.check_eq(case, &returned["streetAddress"], &json!(text));
    }
    for address in [
        json!({ "streetAddress": "48 Rue de Rivoli, 75004 Paris" }),
        json!({ "streetAddress": "48 rue de rivoli" }),
        json!({
            "streetAddress": "48 Rue de Rivoli", "postalCode": "75004",
            "addressLocality": "Paris", "addressCountry": "FR", "name": "Our customer",
        }),
    ] {
        let case = address.to_string();
        let response = client
            .post("/api/deliveries", draft_with("dropoff.address", address))
            .await;
        mismatches.check_eq(&case, response.status, 201);
        mismatches.check_eq(case, &response.json["dropoff"]["address"]["geo"], &geocoded);
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_cannot_be_geocoded_precisely_is_a_violation_of_its_address() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for text in [
        "1 Nowhere Street, Atlantis",
        "Atlantis",
        "Paris",
        "75004 Paris",
        "48",
        "4800 Rue de Rivoli, Paris",
        "48 Rue de Rivoli, 69001 Lyon",
        "48 Rue de Rivoli, Lyon",
        "🚲🚲🚲",
        ",,,",
        "' OR 1=1 --",
        "%_*\"()",
    ] {
        for address in [json!(text), json!({ "streetAddress": text })] {
            let case = format!("{address}");
            let body = json!({
                "pickup": { "address": address },
                "dropoff": { "address": address, "before": "tomorrow 13:00" },
            });
            let response = client.post("/api/deliveries", body).await;
            mismatches.check_violations(case, &response, &["pickup.address", "dropoff.address"]);
        }
    }
    // "Naming what was understood."
    let body = draft_with("dropoff.address", json!("1 Nowhere Street, Atlantis"));
    let response = client.post("/api/deliveries", body).await;
    let message = response.json["violations"][0]["message"].to_string();
    let names_street = message.to_lowercase().contains("nowhere street");
    mismatches.check("1 Nowhere Street, Atlantis", names_street, message);

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postcode_and_a_town_that_contradict_each_other_are_both_named() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;

    for address in [
        json!("48 Rue de Rivoli, 75004 Lyon"),
        json!({ "streetAddress": "48 Rue de Rivoli, 75004 Lyon, Francia" }),
        json!({
            "streetAddress": "48 Rue de Rivoli", "postalCode": "75004", "addressLocality": "Lyon",
            "addressCountry": "FR",
        }),
    ] {
        let draft = draft_with("dropoff.address", address);
        let response = client.post("/api/deliveries", draft).await;
        assert_violations(&response, &["dropoff.address"]);
        assert_eq!(
            response.json["violations"][0]["message"],
            "found 48 Rue de Rivoli, 75004 Paris, \
             but the postcode 75004 and the town Lyon contradict each other"
        );
    }
    let spanish = draft_with(
        "dropoff.address",
        json!("48 Rue de Rivoli, 75004 Paris, Francia"),
    );
    client.create_delivery(spanish).await;
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lat_lng_is_latitude_then_longitude_in_range() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for invalid in [
        json!([90.1, 2]),
        json!([-90.1, 2]),
        json!([48, 180.1]),
        json!([48, -180.1]),
        json!([1e300, 2]),
        json!([200, 200]),
        json!([48]),
        json!([]),
        json!([48, 2, 3]),
        json!(["48", "2"]),
        json!([48, null]),
        json!([[48, 2]]),
        json!([true, false]),
        json!("48,2"),
        json!(""),
        json!(48.85),
        json!(true),
        json!({}),
        json!({ "lat": 48, "lng": 2 }),
    ] {
        let case = invalid.to_string();
        let response = client
            .post(
                "/api/deliveries",
                draft_with("dropoff.address.latLng", invalid),
            )
            .await;
        mismatches.check_violations(case, &response, &["dropoff.address.latLng"]);
    }
    // Out of range unless swapped; far from where the store delivers unless swapped.
    for (swapped, suggestion) in [
        (json!([100.5, 48.8]), "[48.8, 100.5]"),
        (json!([2.3522, 48.8566]), "[48.8566, 2.3522]"),
    ] {
        let case = format!("swapped {swapped}");
        let response = client
            .post(
                "/api/deliveries",
                draft_with("dropoff.address.latLng", swapped),
            )
            .await;
        mismatches.check_violations(&case, &response, &["dropoff.address.latLng"]);
        let message = response.json["violations"][0]["message"].to_string();
        let names_swap = message.to_lowercase().contains("swap") || message.contains(suggestion);
        mismatches.check(case, names_swap, message);
    }
    for invalid in [
        json!("48,2"),
        json!([48, 2]),
        json!({}),
        json!({ "latitude": 48 }),
        json!({ "longitude": 2 }),
        json!({ "latitude": "48", "longitude": "2" }),
        json!({ "latitude": 91, "longitude": 2 }),
        json!({ "latitude": 48, "longitude": 181 }),
        json!({ "latitude": null, "longitude": null }),
    ] {
        let case = format!("geo {invalid}");
        let address = json!({ "streetAddress": "By the river", "geo": invalid });
        let response = client
            .post("/api/deliveries", draft_with("dropoff.address", address))
            .await;
        mismatches.check_violations(case, &response, &["dropoff.address.geo"]);
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_telephone_is_normalized_to_e164_or_is_a_violation() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let mut mismatches = Mismatches::default();

    for (given, expected) in [
        (json!("+33612345678"), json!("+33612345678")),
        (json!("0612345678"), json!("+33612345678")),
        (json!("06 12 34 56 78"), json!("+33612345678")),
        (json!("06.12.34.56.78"), json!("+33612345678")),
        (json!("+33 6 12 34 56 78"), json!("+33612345678")),
        (json!("+33 (0)6 12 34 56 78"), json!("+33612345678")),
        (json!("0033612345678"), json!("+33612345678")),
        (
            json!("Tél. : 06 12 34 56 78, poste 12"),
            json!("+33612345678"),
        ),
        (json!("+52 1 55 1234 5678"), json!("+525512345678")),
        (json!("+49 30 901820"), json!("+4930901820")),
        (json!("+14155552671"), json!("+14155552671")),
        (json!(""), Value::Null),
        (json!("   "), Value::Null),
        (json!(false), Value::Null),
        (json!(null), Value::Null),
    ] {
        let case = given.to_string();
        let response = client
            .post(
                "/api/deliveries",
                draft_with("dropoff.address.telephone", given),
            )
            .await;
        mismatches.check_eq(&case, response.status, 201);
        mismatches.check_eq(
            case,
            &response.json["dropoff"]["address"]["telephone"],
            &expected,
        );
    }
    for invalid in [
        json!("abc"),
        json!("1"),
        json!("+"),
        json!("call me"),
        json!("+999999999999999999999"),
        json!("0612345678".repeat(10_000)),
        json!(612_345_678),
        json!(true),
        json!([]),
        json!({}),
    ] {
        let is_string = invalid.is_string();
        let case: String = invalid.to_string().chars().take(30).collect();
        let response = client
            .post(
                "/api/deliveries",
                draft_with("dropoff.address.telephone", invalid),
            )
            .await;
        mismatches.check_violations(&case, &response, &["dropoff.address.telephone"]);
        let description = response.json["hydra:description"]
            .as_str()
            .unwrap_or_default();
        let message = "The string supplied did not seem to be a phone number. Write a number of FR \
                       as 06 12 34 56 78, one of any country as +33 6 12 34 56 78";
        let has_message = description.ends_with(message) || !is_string;
        mismatches.check(case, has_message, description);
    }

    mismatches.assert_none();
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_of_a_response_is_found_again_without_its_point() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let created = client.post("/api/deliveries", draft()).await.expect(201);
    let address = created["dropoff"]["address"].clone();
    let mut without_point = address.clone();
    for member in ["@id", "geo"] {
        without_point.as_object_mut().unwrap().remove(member);
    }

    let mut body = draft();
    body["dropoff"]["address"] = without_point;
    let again = client.post("/api/deliveries", body).await.expect(201);

    let again = &again["dropoff"]["address"];
    for member in ["streetAddress", "postalCode", "addressLocality", "geo"] {
        assert_eq!(again[member], address[member], "{member}");
    }
    platform.stop().await;
}
