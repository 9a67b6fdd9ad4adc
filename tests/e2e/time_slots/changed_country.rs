//! Changing the country of a store with a time slot: it must be valid in the new country, too.

use proto::{UpdateStoreRequest, stores_client::StoresClient};

use super::{definition, values};
use crate::harness::{
    Platform,
    all_in_one::stderr,
    definitions::{Definitions, TIME_SLOT, violation_fields},
    grpc,
};

/// A country without known public holidays.
const COUNTRY: &str = "CI";

on_both_databases! {
    async fn a_country_in_which_the_time_slot_is_invalid_is_rejected(platform: &Platform) {
        let operator = platform.operator().await;
        let client = platform.client().await;
        let id = platform.store.strip_prefix("stores/").unwrap();
        let set = ["stores", "set", id, "--country", COUNTRY];
        let cases = [
            (
                definition(r#"["Mo-Fr 12:00-14:00"]"#, "2 days", "working_days_only = true"),
                "4:21: working_days_only: no public holidays are known for the store's country; list them under closed, and write weekdays in opening_hours",
            ),
            (
                definition(r#"["Mo-Su 12:00-14:00; PH off"]"#, "2 days", ""),
                "2:19: no public holidays (PH) are known for the store's country: list them under closed",
            ),
        ];

        for (definition, mistake) in cases {
            operator.apply_time_slot(&platform.store, &definition).await;
            let choices = values(&client).await;

            let rejected = platform.run_delivery_output(&set).await;
            assert_eq!(
                (rejected.status.code(), stderr(&rejected)),
                (
                    Some(1),
                    format!(
                        "--country: the store's time slot would be invalid in {COUNTRY} ({mistake}): apply another time slot first\n"
                    )
                )
            );
            let shown = platform.run_delivery_json(&["stores", "show", id]).await;
            assert_eq!(shown["country"], "FR");
            assert_eq!(values(&client).await, choices);
            // The country that the store has already is no change.
            platform.run_delivery(&["stores", "set", id, "--country=FR"]).await;
        }

        operator.apply_time_slot(&platform.store, TIME_SLOT).await;
        assert_eq!(platform.run_delivery_json(&set).await["country"], COUNTRY);
        assert_eq!(values(&client).await.len(), 2);
    }

    async fn of_a_time_slot_and_a_country_that_exclude_each_other_only_one_is_saved(
        platform: &Platform,
    ) {
        let operator = platform.operator().await;
        let definitions = Definitions::as_operator(platform).await;
        let (channel, token) = platform.connect(&["admin"]).await;
        let working_days = definition(r#"["Mo-Fr 12:00-14:00"]"#, "2 days", "working_days_only = true");

        for _ in 0..20 {
            let store = operator.create_store("A shop in France").await;
            let request = UpdateStoreRequest {
                name: store.clone(),
                country_code: Some(COUNTRY.to_owned()),
                ..UpdateStoreRequest::default()
            };
            let mut stores = StoresClient::new(channel.clone());
            let (applied, updated) = tokio::join!(
                definitions.apply_time_slot(&store, &working_days),
                stores.update_store(grpc::with_token(&token, request)),
            );

            let rejected = match (applied, updated) {
                (Ok(_), Err(rejected)) | (Err(rejected), Ok(_)) => violation_fields(&rejected),
                saved => panic!("not exactly one is saved: {saved:?}"),
            };
            assert!(["country_code", "4:21"].contains(&rejected.join(" ").as_str()), "{rejected:?}");
        }
    }
}
