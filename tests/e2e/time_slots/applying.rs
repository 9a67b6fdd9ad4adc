//! An operator gives a store its default time slot.

use tonic::Code;

use super::{intervals, slots, values};
use crate::harness::{
    Platform,
    definitions::{Definitions, violated_fields},
};

on_both_databases! {
    /// "Makes a definition the store's default time slot": at once, also after another at the same
    /// instant.
    async fn a_time_slot_takes_the_place_of_the_one_before_at_once(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;

        for (opening_hours, times) in [
            ("Mo-Su 12:00-14:00", "T10:00:00Z/T12:00:00Z"),
            ("Mo-Su 14:00-17:00", "T12:00:00Z/T15:00:00Z"),
            ("Mo-Su 18:00-19:00", "T16:00:00Z/T17:00:00Z"),
        ] {
            let definition = slots(&format!("[{opening_hours:?}]"), "12 hours", "");
            operator.apply_time_slot(&platform.store, &definition).await;
            assert_eq!(values(&client).await, intervals(&[("2020-04-02", times)]));
        }
    }

    /// A definition with mistakes is refused, one violation per mistake at `line:column`, and the
    /// time slot in force stays; none but an operator applies one.
    async fn a_time_slot_with_mistakes_is_refused_and_the_one_in_force_stays(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        let shop = Definitions::of(platform, &platform.demo_client, &["deliveries", "tasks"]).await;
        let sound = slots(r#"["Mo-Su 12:00-14:00"]"#, "1 day", "");
        let applied = definitions
            .apply_time_slot(&platform.store, &sound)
            .await
            .unwrap();
        assert_eq!(
            (
                &applied.store,
                applied.display_name.as_str(),
                &applied.definition
            ),
            (&platform.store, "Tour", &sound)
        );

        for (definition, lines) in [
            (sound.replace("Mo-Su 12:00-14:00", "Mo-Su noon"), &["2"][..]),
            (sound.replace("[\"Mo-Su 12:00-14:00\"]", "[]"), &["2"]),
            (sound.replace("1 day", "soon"), &["3"]),
            (sound.replace("1 day", "-1 day"), &["3"]),
            (format!("{sound}prior_notice = 5\n"), &["4"]),
            (format!("{sound}nonsense = 1\n"), &["4"]),
            (format!("{sound}= 1\n"), &["4"]),
            (
                sound
                    .replace("1 day", "soon")
                    .replace("Mo-Su 12:00-14:00", "Mo-Su noon"),
                &["2", "3"],
            ),
        ] {
            let refused = definitions
                .apply_time_slot(&platform.store, &definition)
                .await
                .expect_err(&definition);
            assert_eq!(refused.code(), Code::InvalidArgument, "{definition}");
            let fields = violated_fields(&refused);
            let found: Vec<_> = fields
                .iter()
                .map(|field| field.split_once(':').unwrap().0)
                .collect();
            assert_eq!(found, lines, "{fields:?} {definition}");
        }
        let unknown = definitions
            .apply_time_slot("stores/01932e5c-9f4a-7000-8000-00000000000a", &sound)
            .await
            .unwrap_err();
        let forbidden = shop
            .apply_time_slot(&platform.store, &sound)
            .await
            .unwrap_err();

        assert_eq!(
            (unknown.code(), forbidden.code()),
            (Code::NotFound, Code::PermissionDenied)
        );
        let choices = values(&platform.client().await).await;
        assert_eq!(
            choices,
            intervals(&[("2020-04-02", "T10:00:00Z/T12:00:00Z")])
        );
    }
}
