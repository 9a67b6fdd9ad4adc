//! The offered slots: the document, and the rules of a time slot definition.

use hyper::{Method, header::ACCEPT_LANGUAGE};
use proto::CreateStoreRequest;
use serde_json::json;

use super::{CHOICES, LUNCH_AND_AFTERNOON, advance_to, definition, intervals, values};
use crate::harness::{
    Platform,
    assertions::{assert_error, json_ld},
};

/// 12:00 to 14:00 and 14:00 to 17:00 in Paris, in summer.
const LUNCH: &str = "T10:00:00Z/T12:00:00Z";
const AFTERNOON: &str = "T12:00:00Z/T15:00:00Z";

on_both_databases! {
    /// "Paris, daily 12:00–14:00 and 14:00–17:00, interval 2 days. Now 2020-04-02 11:00 →
    /// `2020-04-02T10:00:00Z/2020-04-02T12:00:00Z`, `…T12:00:00Z/…T15:00:00Z`, and the same two of
    /// 04-03."
    async fn choices_are_an_ordered_list_of_utc_intervals_with_labels(platform: &Platform) {
        platform
            .operator()
            .await
            .apply_time_slot(&platform.store, &definition(LUNCH_AND_AFTERNOON, "2 days", ""))
            .await;
        let client = platform.client().await;
        let request = client
            .request(Method::GET, CHOICES)
            .header(ACCEPT_LANGUAGE, "en");

        let mut choices = json_ld(&client.send(request, "").await, 200);

        let id = choices["@id"].as_str().unwrap();
        assert!(id.starts_with("/api/time_slots/"), "{id}");
        choices["@id"] = json!("/api/time_slots/…");
        let choice = |interval: (&str, &str), label: &str| {
            let value = intervals(&[interval]).remove(0);
            json!({ "@type": "TimeSlotChoice", "value": value, "label": label })
        };
        let [today, tomorrow] = ["2020-04-02", "2020-04-03"];
        assert_eq!(
            choices,
            json!({
                "@context": "/api/contexts/TimeSlotChoices",
                "@id": "/api/time_slots/…",
                "@type": "TimeSlotChoices",
                "choices": [
                    choice((today, LUNCH), "Today between 12:00 and 14:00"),
                    choice((today, AFTERNOON), "Today between 14:00 and 17:00"),
                    choice((tomorrow, LUNCH), "Tomorrow between 12:00 and 14:00"),
                    choice((tomorrow, AFTERNOON), "Tomorrow between 14:00 and 17:00"),
                ],
            })
        );
    }

    /// "Offered: start ≥ now + prior notice; start < now + interval (calendar time); […] not a
    /// closed day, weekend or public holiday where so configured."
    async fn a_slot_is_offered_after_the_prior_notice_and_within_the_interval(platform: &Platform) {
        let daily = |interval, options| definition(LUNCH_AND_AFTERNOON, interval, options);
        let on = |day: &str, interval| definition(&format!("[\"{day} 12:00-14:00\"]"), interval, "");
        let thursday = "2020-04-02T11:00+02:00";
        let before_may_day = "2020-04-30T11:00+02:00";
        let offered = [
            (
                thursday,
                daily("36 hours", ""),
                both_on(&["2020-04-02", "2020-04-03"]),
            ),
            (thursday, daily("25 hours", ""), both_on(&["2020-04-02"])),
            (thursday, daily("1 day", ""), both_on(&["2020-04-02"])),
            (
                thursday,
                daily("1 day", "prior_notice = \"1 hour\""),
                both_on(&["2020-04-02"]),
            ),
            (
                thursday,
                daily("1 day", "prior_notice = \"2 hours\""),
                afternoon_of("2020-04-02"),
            ),
            (
                thursday,
                daily("2 days", "prior_notice = \"1 day\""),
                both_on(&["2020-04-03"]),
            ),
            (
                thursday,
                on("Fr", "2 days"),
                intervals(&[("2020-04-03", LUNCH)]),
            ),
            (thursday, on("Su", "2 days"), vec![]),
            (
                thursday,
                on("Sa", "1 month"),
                ["04", "11", "18", "25"]
                    .map(|day| intervals(&[(&format!("2020-04-{day}"), LUNCH)]).remove(0))
                    .to_vec(),
            ),
            (
                thursday,
                definition(r#"["Th 22:00-02:00"]"#, "2 days", ""),
                vec!["2020-04-02T20:00:00Z/2020-04-03T00:00:00Z".to_owned()],
            ),
            // A slot that starts now is offered; one that has started is not.
            (
                "2020-04-02T12:00+02:00",
                daily("12 hours", ""),
                both_on(&["2020-04-02"]),
            ),
            (
                "2020-04-02T12:00:01+02:00",
                daily("12 hours", ""),
                afternoon_of("2020-04-02"),
            ),
            // Friday 1 May is a holiday in France.
            (
                before_may_day,
                daily("2 days", "working_days_only = true"),
                both_on(&["2020-04-30"]),
            ),
            (
                before_may_day,
                daily("2 days", "working_days_only = false"),
                both_on(&["2020-04-30", "2020-05-01"]),
            ),
            // Summer time ends on Sunday.
            (
                "2020-10-24T11:00+02:00",
                daily("2 days", ""),
                [
                    both_on(&["2020-10-24"]),
                    intervals(&[
                        ("2020-10-25", "T11:00:00Z/T13:00:00Z"),
                        ("2020-10-25", "T13:00:00Z/T16:00:00Z"),
                    ]),
                ]
                .concat(),
            ),
            // These two calendar days have 49 hours; Monday's lunch starts within the 49th.
            (
                "2020-10-24T12:01+02:00",
                on("Mo", "2 days"),
                intervals(&[("2020-10-26", "T11:00:00Z/T13:00:00Z")]),
            ),
            // A Friday, before a weekend without holidays.
            (
                "2024-05-31T11:00+02:00",
                daily("2 days", "working_days_only = true"),
                both_on(&["2024-05-31"]),
            ),
        ];

        for (now, definition, expected) in offered {
            let choices = choices_at(platform, now, &definition).await;
            assert_eq!(choices, expected, "{now} {definition}");
        }
    }

    /// "Not past the same-day cutoff", `previous_day_cutoff`, `closed`, `slot_length`.
    async fn a_slot_is_not_offered_after_a_cutoff_or_on_a_closed_day(platform: &Platform) {
        let now = "2020-04-02T11:00+02:00";
        let today = both_on(&["2020-04-02"]);
        let tomorrow = both_on(&["2020-04-03"]);
        let both = both_on(&["2020-04-02", "2020-04-03"]);

        for (option, expected) in [
            ("same_day_cutoff = \"10:00\"", &tomorrow),
            ("same_day_cutoff = \"11:01\"", &both),
            ("previous_day_cutoff = \"10:00\"", &today),
            ("previous_day_cutoff = \"18:00\"", &both),
            ("closed = [\"2020-04-03\"]", &today),
            ("closed = [\"2020-03-30/2020-04-02\"]", &tomorrow),
            ("closed = [\"2020-04-02/2020-04-03\"]", &vec![]),
        ] {
            let definition = definition(LUNCH_AND_AFTERNOON, "2 days", option);
            let choices = choices_at(platform, now, &definition).await;
            assert_eq!(&choices, expected, "{option}");
        }
        let hours = "slot_length = \"1 hour\"";
        let hourly = definition(r#"["Mo-Su 14:00-17:00"]"#, "12 hours", hours);
        assert_eq!(
            choices_at(platform, now, &hourly).await,
            intervals(&[
                ("2020-04-02", "T12:00:00Z/T13:00:00Z"),
                ("2020-04-02", "T13:00:00Z/T14:00:00Z"),
                ("2020-04-02", "T14:00:00Z/T15:00:00Z"),
            ])
        );
    }

    async fn a_store_without_a_time_slot_has_no_choices(platform: &Platform) {
        let client = platform.new_store_client().await;

        assert_error(&client.get(CHOICES).await, 404);
    }
}

fn both_on(dates: &[&str]) -> Vec<String> {
    dates
        .iter()
        .flat_map(|date| intervals(&[(date, LUNCH), (date, AFTERNOON)]))
        .collect()
}

fn afternoon_of(date: &str) -> Vec<String> {
    intervals(&[(date, AFTERNOON)])
}

/// The slots offered at an instant by a new store in Paris with this time slot.
async fn choices_at(platform: &Platform, now: &str, definition: &str) -> Vec<String> {
    advance_to(platform, now);
    let operator = platform.operator().await;
    let store = operator
        .create_store_with(CreateStoreRequest {
            display_name: "A shop in Paris".to_owned(),
            time_zone: Some("Europe/Paris".to_owned()),
            country_code: Some("FR".to_owned()),
            ..CreateStoreRequest::default()
        })
        .await;
    operator.apply_time_slot(&store, definition).await;
    let credentials = operator.create_client(&store, &["deliveries"]).await;
    values(&platform.client_for(&credentials, &["deliveries"]).await).await
}
