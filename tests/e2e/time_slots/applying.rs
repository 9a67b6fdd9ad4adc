//! Applying a store's default time slot.

use tonic::Code;

use super::{definition, intervals, values};
use crate::harness::{
    Platform, UNKNOWN_ID,
    definitions::{Definitions, assert_mistakes},
};

on_both_databases! {
    /// Also if several are applied at the same time by the clock.
    async fn an_applied_time_slot_replaces_the_previous_one_immediately(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;

        for (opening_hours, times) in [
            ("Mo-Su 12:00-14:00", "T10:00:00Z/T12:00:00Z"),
            ("Mo-Su 14:00-17:00", "T12:00:00Z/T15:00:00Z"),
            ("Mo-Su 18:00-19:00", "T16:00:00Z/T17:00:00Z"),
        ] {
            let definition = definition(&format!("[{opening_hours:?}]"), "12 hours", "");
            operator.apply_time_slot(&platform.store, &definition).await;
            assert_eq!(values(&client).await, intervals(&[("2020-04-02", times)]));
        }
    }

    /// An invalid definition is rejected with one violation per mistake, at `line:column`, and the
    /// current time slot stays; only an operator may apply one.
    async fn an_invalid_time_slot_is_rejected_and_the_current_one_stays(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        let shop = Definitions::as_client(platform, &platform.demo_client, &["deliveries", "tasks"]).await;
        let valid = definition(r#"["Mo-Su 12:00-14:00"]"#, "1 day", "");
        let applied = definitions
            .apply_time_slot(&platform.store, &valid)
            .await
            .unwrap();
        assert_eq!(
            (
                &applied.store,
                applied.display_name.as_str(),
                &applied.definition
            ),
            (&platform.store, "Tour", &valid)
        );

        for (definition, lines) in [
            (valid.replace("Mo-Su 12:00-14:00", "Mo-Su noon"), &["2"][..]),
            (valid.replace("[\"Mo-Su 12:00-14:00\"]", "[]"), &["2"]),
            (valid.replace("1 day", "soon"), &["3"]),
            (valid.replace("1 day", "-1 day"), &["3"]),
            (format!("{valid}prior_notice = 5\n"), &["4"]),
            (format!("{valid}nonsense = 1\n"), &["4"]),
            (format!("{valid}= 1\n"), &["4"]),
            (
                valid
                    .replace("1 day", "soon")
                    .replace("Mo-Su 12:00-14:00", "Mo-Su noon"),
                &["2", "3"],
            ),
        ] {
            let rejected = definitions
                .apply_time_slot(&platform.store, &definition)
                .await
                .expect_err(&definition);
            assert_mistakes(&rejected, lines, &definition);
        }
        let unknown = definitions
            .apply_time_slot(&format!("stores/{UNKNOWN_ID}"), &valid)
            .await
            .unwrap_err();
        let forbidden = shop
            .apply_time_slot(&platform.store, &valid)
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
