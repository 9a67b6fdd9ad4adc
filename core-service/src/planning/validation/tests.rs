//! Arbitrary input is either parsed or rejected with the path of its field.

use std::cell::Cell;

use proptest::{collection, option, prelude::*, test_runner::TestRunner};

use super::*;

/// Arbitrary texts, some of them almost valid.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[0-9 :/TZ+-]{0,40}",
        "(tomorrow|today|monday|\\+)? ?[0-9]{0,12} ?(days|hours|h|pm)?",
        "\\+?[0-9 ()-]{0,20}",
    ]
}

/// Texts of one kind, most of them valid.
fn mostly(valid: &'static str) -> impl Strategy<Value = Option<String>> {
    option::weighted(0.9, prop_oneof![4 => valid, 1 => any_text()])
}

prop_compose! {
    fn any_draft()(
        texts in collection::vec(option::of(any_text()), 3),
        time_slot in mostly("2020-0[4-9]-[12][0-9] 0[6-9]:[0-5]0-1[0-9]:[0-5]0"),
        weight in any::<Option<i64>>(),
        packages in collection::vec((any_text(), any::<u32>()), 0..4),
        tags in collection::vec(any_text(), 0..4),
        metadata in collection::hash_map(any_text(), any_text(), 0..4),
    ) -> proto::TaskDraft {
        let [before, after, comments] = texts.try_into().unwrap();
        proto::TaskDraft {
            address: None,
            before,
            after,
            time_slot,
            comments,
            weight,
            packages: packages
                .into_iter()
                .map(|(r#type, quantity)| proto::Package { r#type, quantity })
                .collect(),
            tags,
            metadata,
        }
    }
}

prop_compose! {
    fn any_address()(
        texts in collection::vec(option::of(any_text()), 7),
        telephone in mostly("06( ?[0-9]{2}){4}|\\+3361[0-9]{7}"),
        point in option::of((-90.0..=90.0, -180.0..=180.0)),
    ) -> proto::AddressDraft {
        let [street_address, place_name, contact_name, rest @ ..] =
            <[_; 7]>::try_from(texts).unwrap();
        let [description, postal_code, address_locality, address_country] = rest;
        proto::AddressDraft {
            street_address,
            lat_lng: point.map(|(latitude, longitude)| proto::LatLng { latitude, longitude }),
            place_name,
            contact_name,
            telephone,
            description,
            postal_code,
            address_locality,
            address_country,
        }
    }
}

#[test]
fn violations_of_arbitrary_input_have_the_path_of_their_field() {
    let now = "2020-04-02T11:00:00+02:00[Europe/Paris]".parse().unwrap();
    let context = ParseContext {
        now: &now,
        date_order: DateOrder::DayFirst,
        country: "FR",
    };
    let (cases, slots, telephones) = (Cell::new(0), Cell::new(0), Cell::new(0));
    TestRunner::default()
        .run(&(any_draft(), any_address()), |(draft, address)| {
            cases.set(cases.get() + 1);
            let mut violations = Violations::new();

            let times = times("dropoff", &draft, &context, &mut violations);
            let details = details("dropoff", draft, &mut violations);
            let address = address_object("dropoff.address", address, "FR", &mut violations);

            for violation in violations.iter() {
                prop_assert!(violation.field.starts_with("dropoff."), "{violation:?}");
                prop_assert!(!violation.description.is_empty());
            }
            if let Some(slot) = times.slot {
                slots.set(slots.get() + 1);
                prop_assert!(slot.after < slot.before);
            }
            prop_assert!(details.tags.iter().all(|tag| !tag.is_empty()));
            if let Some(telephone) = address.telephone {
                telephones.set(telephones.get() + 1);
                prop_assert!(telephone.starts_with('+'), "{telephone}");
            }
            Ok(())
        })
        .unwrap();
    let (cases, slots, telephones) = (cases.get(), slots.get(), telephones.get());
    assert!(
        2 * slots >= cases && 4 * telephones >= cases,
        "{slots} slots and {telephones} telephone numbers of {cases} drafts"
    );
}

#[test]
fn an_iri_in_place_of_an_address_is_a_violation_and_any_other_text_is_none() {
    for (text, is_refused) in [
        ("/api/addresses/01932e5c-9f4a-7000-8000-00000000000a", true),
        (" \u{feff}https://delivery.example/api/addresses/1 ", true),
        ("48/2 Rue de Rivoli, 75004 Paris", false),
        ("Nowhere", false),
    ] {
        let draft = proto::task_draft::Address::AddressText(text.to_owned());
        let mut violations = Violations::new();

        let address = address("dropoff.address", Some(draft), "FR", &mut violations);

        let reasons: Vec<_> = violations.iter().map(|found| &*found.reason).collect();
        let expected: &[&str] = if is_refused {
            &["ADDRESS_NOT_FOUND"]
        } else {
            &[]
        };
        assert_eq!(reasons, expected, "{text}");
        assert_eq!(address.is_none(), is_refused, "{text}");
    }
}

/// As from a copied contact or a page that breaks words.
#[test]
fn what_has_no_visible_form_is_dropped_from_what_machines_read_and_is_no_text_of_its_own() {
    let now = "2020-04-02T11:00:00+02:00[Europe/Paris]".parse().unwrap();
    let context = ParseContext {
        now: &now,
        date_order: DateOrder::DayFirst,
        country: "FR",
    };
    let marked = |text: &str| {
        Some(text.replace(' ', "\u{200b} \u{ad}"))
            .map(|text| format!("\u{feff}\u{2066}{text}\u{2069}"))
    };
    let mut violations = Violations::new();
    let slot = proto::TaskDraft {
        time_slot: marked("2020-04-03 10:00-12:00"),
        after: marked("2020-04-03 09:00"),
        before: marked(""),
        comments: marked(""),
        packages: vec![proto::Package {
            r#type: "X\u{200d}L".to_owned(),
            quantity: 1,
        }],
        ..proto::TaskDraft::default()
    };
    let before = proto::TaskDraft {
        before: marked("2020-04-03 12:00"),
        time_slot: marked(""),
        ..proto::TaskDraft::default()
    };
    let address = proto::AddressDraft {
        telephone: marked("06 12 34 56 78"),
        address_country: marked("fr"),
        contact_name: Some("Anne\u{2011}Marie \u{200d}👩\u{200d}🍳".to_owned()),
        place_name: marked(" "),
        ..proto::AddressDraft::default()
    };

    let slot_times = times("dropoff", &slot, &context, &mut violations);
    let before_times = times("dropoff", &before, &context, &mut violations);
    let details = details("dropoff", slot, &mut violations);
    let address = address_object("dropoff.address", address, "FR", &mut violations);

    assert_eq!(violations, Violations::new());
    let noon = "2020-04-03T12:00:00+02:00".parse().ok();
    assert_eq!(slot_times.slot.map(|slot| slot.before), noon);
    assert_eq!(slot_times.after, "2020-04-03T09:00:00+02:00".parse().ok());
    assert_eq!((before_times.before, before_times.slot), (noon, None));
    assert_eq!((&*details.comments, &*details.packages[0].kind), ("", "XL"));
    let expected = AddressDraft {
        telephone: Some("+33612345678".to_owned()),
        country: Some("FR".to_owned()),
        // Kept: they change what a name looks like.
        contact_name: Some("Anne\u{2011}Marie \u{200d}👩\u{200d}🍳".to_owned()),
        ..AddressDraft::default()
    };
    assert_eq!(address, expected);
}
