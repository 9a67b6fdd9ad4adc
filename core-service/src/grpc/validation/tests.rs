//! Arbitrary input is either parsed or rejected with the path of its field.

use proptest::{collection, option, prelude::*};

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

prop_compose! {
    fn any_draft()(
        texts in collection::vec(option::of(any_text()), 4),
        weight in any::<Option<i64>>(),
        packages in collection::vec((any_text(), any::<u32>()), 0..4),
        tags in collection::vec(any_text(), 0..4),
        metadata in collection::hash_map(any_text(), any_text(), 0..4),
    ) -> proto::TaskDraft {
        let [before, after, time_slot, comments] = texts.try_into().unwrap();
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
        texts in collection::vec(option::of(any_text()), 8),
        point in any::<Option<(f64, f64)>>(),
    ) -> proto::AddressDraft {
        let [street_address, place_name, contact_name, telephone, rest @ ..] =
            <[_; 8]>::try_from(texts).unwrap();
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

proptest! {
    #[test]
    fn violations_of_arbitrary_input_have_the_path_of_their_field(
        draft in any_draft(),
        address in any_address(),
    ) {
        let now = "2020-04-02T11:00:00+02:00[Europe/Paris]".parse().unwrap();
        let context = ParseContext {
            now: &now,
            date_order: DateOrder::DayFirst,
            country: "FR",
        };
        let mut violations = Violations::new();

        let times = times("dropoff", &draft, &context, &mut violations);
        let details = details("dropoff", draft, &mut violations);
        let address = address_object("dropoff.address", address, "FR", &mut violations);

        for violation in violations.iter() {
            prop_assert!(violation.field.starts_with("dropoff."), "{violation:?}");
            prop_assert!(!violation.description.is_empty());
        }
        if let Some(slot) = times.slot {
            prop_assert!(slot.after < slot.before);
        }
        prop_assert!(details.tags.iter().all(|tag| !tag.is_empty()));
        if let Some(telephone) = address.and_then(|address| address.telephone) {
            prop_assert!(telephone.starts_with('+'), "{telephone}");
        }
    }
}
