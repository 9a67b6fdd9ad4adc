//! `SearchDeliveries`.

use jiff::SignedDuration;
use proto::{SearchDeliveriesResponse, iri};
use serde_json::json;

use super::{Reader, Shop, assert_violation, draft, names};
use crate::harness::{Platform, UNKNOWN_ID};

/// Fails unless exactly these deliveries are found.
async fn assert_finds(
    reader: &Reader,
    text: &str,
    expected: &[&String],
) -> SearchDeliveriesResponse {
    let found = reader.search(text).await.unwrap();
    assert_eq!(names(&found.deliveries), expected, "{text:?}");
    assert!(!found.has_more, "{text:?}");
    found
}

#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
fn at(instant: &str) -> Option<prost_types::Timestamp> {
    let instant: jiff::Timestamp = instant.parse().unwrap();
    Some(prost_types::Timestamp {
        seconds: instant.as_second(),
        nanos: 0,
    })
}

on_both_databases! {
    async fn deliveries_are_found_by_what_people_know_of_them(platform: &Platform) {
        let [first, second] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        let mut known = draft("2020-04-03 13:00");
        known["externalReference"] = json!("ORDER 7");
        known["dropoff"]["address"]["contactName"] = json!("Zoé Martin");
        known["dropoff"]["address"]["telephone"] = json!("06 12 34 56 78");
        let mut alike = draft("2020-04-03 10:00");
        alike["externalReference"] = json!("ORDER 7");
        alike["pickup"]["address"]["contactName"] = json!("Zoe Dupont");
        let known = first.create(known).await;
        let alike = second.create(alike).await;
        let other = second.deliver("2020-04-03 09:00").await;
        let (_, id) = known.split_once('/').unwrap();

        for (text, expected) in [
            (id, vec![&known]),
            (&*known, vec![&known]),
            (&*iri::of(&known), vec![&known]),
            (&*format!("https://example.com{}", iri::of(&known)), vec![&known]),
            (&*id.to_uppercase(), vec![&known]),
            // Their ends differ.
            (&id[..35], vec![&known]),
            (UNKNOWN_ID, vec![]),
            ("ORDER 7", vec![&alike, &known]),
            ("06 12 34 56 78", vec![&known]),
            ("+33612345678", vec![&known]),
            ("0612345679", vec![]),
            ("zoe", vec![&alike, &known]),
            ("martin ZOË", vec![&known]),
            ("martin dupont", vec![]),
            ("rue de rivoli 48", vec![&other, &alike, &known]),
            ("  rivoli  ", vec![&other, &alike, &known]),
        ] {
            assert_finds(&reader, text, &expected).await;
        }
        // Deliveries that are created together have a prefix in common.
        let prefix = reader.search(&id[..8]).await.unwrap();
        assert!(names(&prefix.deliveries).contains(&&*known));
        let found = reader.search(id).await.unwrap().deliveries;
        assert_eq!(found, [reader.get(&known).await.unwrap()]);
        assert_eq!(found[0].store, first.store);
    }

    async fn names_and_addresses_are_searched_from_yesterday_to_seven_days_from_today(platform: &Platform) {
        let [shop, _] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        let mut reference = draft("2020-04-10 00:00");
        reference["externalReference"] = json!("FAR");
        let far = shop.create(reference).await;
        let near = shop.deliver("2020-04-09 23:59").await;
        let soon = shop.deliver("2020-04-02 20:00").await;

        let found = assert_finds(&reader, "rivoli", &[&soon, &near]).await;
        let searched = (found.searched_from, found.searched_until);
        assert_eq!(searched, (at("2020-04-01T00:00:00+02:00"), at("2020-04-10T00:00:00+02:00")));
        let (_, id) = far.split_once('/').unwrap();
        let found = assert_finds(&reader, id, &[&far]).await;
        assert_eq!((found.searched_from, found.searched_until), (None, None));
        assert_finds(&reader, "FAR", &[&far]).await;

        platform.advance(SignedDuration::from_hours(24));
        let reader = Reader::of_all_stores(platform).await;
        assert_finds(&reader, "rivoli", &[&soon, &near, &far]).await;
        platform.advance(SignedDuration::from_hours(24));
        let reader = Reader::of_all_stores(platform).await;
        assert_finds(&reader, "rivoli", &[&near, &far]).await;
    }

    async fn the_newest_thirty_are_found(platform: &Platform) {
        let [shop, _] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        let mut created = Vec::new();
        for minute in 10..42 {
            created.insert(0, shop.deliver(&format!("2020-04-03 10:{minute}")).await);
        }

        let found = reader.search("rivoli").await.unwrap();

        assert_eq!(names(&found.deliveries), created[..30]);
        assert!(found.has_more);
        // What ends earlier was not searched.
        assert_eq!(found.searched_from, at("2020-04-03T10:10:00+02:00"));
    }

    async fn a_text_without_meaning_is_refused_and_a_short_one_is_no_word(platform: &Platform) {
        let [shop, _] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        shop.deliver("2020-04-03 10:00").await;

        for text in ["", "  ", "\u{200b}", &"r".repeat(201), "ri\0voli"] {
            assert_violation(&reader.search(text).await.unwrap_err(), "text");
        }
        for text in ["de", "4", "%", "_", "'", "deliveries/1", "rivoli%20rue"] {
            assert_finds(&reader, text, &[]).await;
        }
    }
}
