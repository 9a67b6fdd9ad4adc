//! "Every event of the store, numbered without gaps […], kept 30 days, so a shop that was down
//! heals itself and can prove it missed nothing."

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{EVENTS, catch_up, deliver, iri, once_numbered, order};
use crate::harness::{
    ApiClient, Platform,
    assertions::{assert_error, assert_violations, json_ld},
};

on_both_databases! {
    /// Events of a delivery, with or without a webhook that is told of them.
    async fn a_store_reads_its_events_in_order(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let courier = platform.courier().await;
        let empty = json_ld(&client.get(EVENTS).await, 200);
        assert_eq!(
            (&empty["hydra:member"], &empty["firstNumber"], &empty["lastNumber"]),
            (&json!([]), &json!(1), &json!(0))
        );
        let first = deliver(&client, &courier).await;
        once_numbered(&client, 2).await;
        deliver(&other, &courier).await;
        let second = client.create_delivery(order()).await;
        client.delete(iri(&second)).await.expect(204);

        let page = once_numbered(&client, 3).await;

        let members = page["hydra:member"].as_array().unwrap();
        let event = |index: usize, event: &str, object: &str| {
            let id = members[index]["id"].as_str().unwrap();
            json!({
                "@id": format!("/api/events/{id}"),
                "@type": "Event",
                "id": id,
                "number": index + 1,
                "event": event,
                "object": object,
                "createdAt": "2020-04-02T11:00:00+02:00",
            })
        };
        assert_eq!(
            json_ld(&client.get(EVENTS).await, 200),
            json!({
                "@context": "/api/contexts/Event",
                "@id": EVENTS,
                "@type": "hydra:Collection",
                "hydra:member": [
                    event(0, "delivery.picked", &first),
                    event(1, "delivery.completed", &first),
                    event(2, "delivery.cancelled", iri(&second)),
                ],
                "hydra:view": {
                    "@id": EVENTS,
                    "@type": "hydra:PartialCollectionView",
                    "hydra:first": EVENTS,
                },
                "firstNumber": 1,
                "lastNumber": 3,
            })
        );
        let mut alone = members[1].clone();
        alone["@context"] = json!("/api/contexts/Event");
        assert_eq!(json_ld(&client.get(iri(&alone)).await, 200), alone);
        assert_error(&other.get(iri(&alone)).await, 404);
        assert_eq!(once_numbered(&other, 2).await["lastNumber"], 2);
    }

    /// `?after=`: what follows a number, page by page to the newest.
    async fn a_shop_that_was_down_reads_on_after_the_last_number_it_saw(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        for _ in 0..4 {
            deliver(&client, &courier).await;
        }
        once_numbered(&client, 8).await;

        let page = client.get("/api/events?after=3&itemsPerPage=2").await.expect(200);

        assert_eq!(numbers(&page), [4, 5]);
        assert_eq!((&page["firstNumber"], &page["lastNumber"]), (&json!(1), &json!(8)));
        assert_eq!(
            page["hydra:view"],
            json!({
                "@id": "/api/events?itemsPerPage=2&after=3",
                "@type": "hydra:PartialCollectionView",
                "hydra:first": "/api/events?itemsPerPage=2",
                "hydra:next": "/api/events?itemsPerPage=2&after=5",
            })
        );
        let walked: Vec<_> = catch_up(&client, 0).await.iter().map(number).collect();
        assert_eq!(walked, (1..=8).collect::<Vec<_>>());
        let newest = client.get("/api/events?after=8").await.expect(200);
        assert_eq!((numbers(&newest), &newest["lastNumber"]), (vec![], &json!(8)));
        assert!(newest["hydra:view"].get("hydra:next").is_none());
        deliver(&client, &courier).await;
        once_numbered(&client, 10).await;
        let news = client.get("/api/events?after=8").await.expect(200);
        assert_eq!(numbers(&news), [9, 10]);
    }

    /// "Kept 30 days"; "a cursor older than retention → 410".
    async fn what_is_kept_no_more_is_410_and_never_a_silent_gap(platform: &Platform) {
        let client = platform.client().await;
        deliver(&client, &platform.courier().await).await;
        once_numbered(&client, 2).await;
        platform.advance(SignedDuration::from_hours(24 * 29));
        let client = platform.client().await;
        let day = "2020-05-02 13:00";
        let mut later = order();
        later["dropoff"]["before"] = json!(day);
        let delivery = client.create_delivery(later).await;
        let courier = platform.courier().await;
        courier.complete(iri(&delivery["pickup"])).await;
        once_numbered(&client, 3).await;
        assert_eq!(numbers(&client.get("/api/events?after=0").await.expect(200)), [1, 2, 3]);

        platform.advance(SignedDuration::from_hours(24) + SignedDuration::from_secs(1));
        let client = platform.client().await;
        let page = until_first(platform, &client, 3).await;

        assert_eq!((numbers(&page), &page["lastNumber"]), (vec![3], &json!(3)));
        for gone in [0, 1] {
            let answer = client.get(&format!("{EVENTS}?after={gone}")).await;
            assert_error(&answer, 410);
            assert_eq!(answer.json["code"], "events_expired");
            let detail = answer.json["detail"].as_str().unwrap();
            assert!(detail.ends_with("the oldest is 3"), "{detail}");
        }
        assert_eq!(numbers(&client.get("/api/events?after=2").await.expect(200)), [3]);
    }

    /// A number that no event has is a mistake, not an empty page.
    async fn a_number_beyond_the_newest_is_refused(platform: &Platform) {
        let client = platform.client().await;
        deliver(&client, &platform.courier().await).await;
        once_numbered(&client, 2).await;

        for after in ["3", "-1", "x", "", "1.5", "9223372036854775807", "9223372036854775808"] {
            let answer = client.get(&format!("{EVENTS}?after={after}")).await;
            assert_violations(&answer, &["after"]);
        }
        let both = client.get("/api/events?after=x&itemsPerPage=0").await;
        assert_violations(&both, &["after", "itemsPerPage"]);
        let twice = client.get("/api/events?after=1&after=2").await;
        assert_violations(&twice, &["after"]);
    }

    /// As webhooks: any scope, of a store's client.
    async fn whoever_may_be_told_of_events_may_read_them(platform: &Platform) {
        for scope in ["deliveries", "tasks"] {
            let client = platform.client_of(&platform.demo_client, &[scope]).await;
            json_ld(&client.get(EVENTS).await, 200);
        }
        let operator = platform.client_of(&platform.operator_client, &["admin"]).await;
        assert_error(&operator.get(EVENTS).await, 403);
        assert_error(&platform.stranger().get(EVENTS).await, 401);
    }
}

/// The log, once its oldest event has this number.
async fn until_first(platform: &Platform, client: &ApiClient, first: i64) -> Value {
    client
        .until(EVENTS, |page| {
            // The clock is looked at when it moves.
            platform.advance(SignedDuration::from_millis(1));
            (page["firstNumber"] == first).then_some(page)
        })
        .await
}

fn numbers(page: &Value) -> Vec<i64> {
    page["hydra:member"]
        .as_array()
        .unwrap()
        .iter()
        .map(number)
        .collect()
}

fn number(event: &Value) -> i64 {
    event["number"].as_i64().unwrap()
}
