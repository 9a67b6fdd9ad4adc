//! `GET /api/events`: every event of a store, numbered without gaps and retained for 30 days, so
//! that a shop can read after an outage what it missed.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{EVENTS, catch_up, deliver, draft, iri, wait_for_number};
use crate::harness::{
    ApiClient, Platform,
    assertions::{assert_error, assert_violations, json_ld},
};

on_both_databases! {
    /// Events are recorded even if the store has no webhook.
    async fn a_store_reads_its_events_in_order(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let courier = platform.courier().await;
        let empty = json_ld(&client.get(EVENTS).await, 200);
        assert_eq!(
            (&empty["hydra:member"], &empty["firstNumber"], &empty["lastNumber"]),
            (&json!([]), &json!(1), &json!(0))
        );
        let first = deliver(&client, &courier).await;
        wait_for_number(&client, 3).await;
        deliver(&other, &courier).await;
        let second = client.create_delivery(draft()).await;
        client.delete(iri(&second)).await.expect(204);

        let page = wait_for_number(&client, 5).await;

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
                    event(0, "delivery.created", &first),
                    event(1, "delivery.picked", &first),
                    event(2, "delivery.completed", &first),
                    event(3, "delivery.created", iri(&second)),
                    event(4, "delivery.cancelled", iri(&second)),
                ],
                "hydra:view": {
                    "@id": EVENTS,
                    "@type": "hydra:PartialCollectionView",
                    "hydra:first": EVENTS,
                },
                "hydra:search": {
                    "@type": "hydra:IriTemplate",
                    "hydra:template": "/api/events{?after}",
                    "hydra:variableRepresentation": "BasicRepresentation",
                    "hydra:mapping": [
                        { "@type": "IriTemplateMapping", "variable": "after", "property": "number", "required": false },
                    ],
                },
                "firstNumber": 1,
                "lastNumber": 5,
            })
        );
        let mut single = members[1].clone();
        single["@context"] = json!("/api/contexts/Event");
        assert_eq!(json_ld(&client.get(iri(&single)).await, 200), single);
        assert_error(&other.get(iri(&single)).await, 404);
        assert_eq!(wait_for_number(&other, 3).await["lastNumber"], 3);
    }

    /// `?after=`: the events after a number, page by page.
    async fn a_shop_continues_after_the_last_number_it_read(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        for _ in 0..4 {
            deliver(&client, &courier).await;
        }
        wait_for_number(&client, 12).await;

        let page = client.get("/api/events?after=3&itemsPerPage=2").await.expect(200);

        assert_eq!(numbers(&page), [4, 5]);
        assert_eq!((&page["firstNumber"], &page["lastNumber"]), (&json!(1), &json!(12)));
        assert_eq!(
            page["hydra:view"],
            json!({
                "@id": "/api/events?itemsPerPage=2&after=3",
                "@type": "hydra:PartialCollectionView",
                "hydra:first": "/api/events?itemsPerPage=2",
                "hydra:next": "/api/events?itemsPerPage=2&after=5",
            })
        );
        let read: Vec<_> = catch_up(&client, 0).await.iter().map(number).collect();
        assert_eq!(read, (1..=12).collect::<Vec<_>>());
        let newest = client.get("/api/events?after=12").await.expect(200);
        assert_eq!((numbers(&newest), &newest["lastNumber"]), (vec![], &json!(12)));
        assert!(newest["hydra:view"].get("hydra:next").is_none());
        deliver(&client, &courier).await;
        wait_for_number(&client, 15).await;
        let newer = client.get("/api/events?after=12").await.expect(200);
        assert_eq!(numbers(&newer), [13, 14, 15]);
    }

    /// Events are retained for 30 days.
    async fn an_expired_number_is_410_and_never_a_silent_gap(platform: &Platform) {
        let client = platform.client().await;
        deliver(&client, &platform.courier().await).await;
        wait_for_number(&client, 3).await;
        platform.advance(SignedDuration::from_hours(24 * 29));
        let client = platform.client().await;
        let before = "2020-05-02 13:00";
        let mut draft = draft();
        draft["dropoff"]["before"] = json!(before);
        let delivery = client.create_delivery(draft).await;
        let courier = platform.courier().await;
        courier.complete(iri(&delivery["pickup"])).await;
        wait_for_number(&client, 5).await;
        let retained = client.get("/api/events?after=0").await.expect(200);
        assert_eq!(numbers(&retained), [1, 2, 3, 4, 5]);

        platform.advance(SignedDuration::from_hours(24) + SignedDuration::from_secs(1));
        let client = platform.client().await;
        let page = wait_for_first_number(platform, &client, 4).await;

        assert_eq!((numbers(&page), &page["lastNumber"]), (vec![4, 5], &json!(5)));
        for expired in [0, 1, 2] {
            let response = client.get(&format!("{EVENTS}?after={expired}")).await;
            assert_error(&response, 410);
            assert_eq!(response.json["code"], "events_expired");
            let detail = response.json["detail"].as_str().unwrap();
            assert!(detail.ends_with("the oldest is 4"), "{detail}");
        }
        assert_eq!(numbers(&client.get("/api/events?after=3").await.expect(200)), [4, 5]);
    }

    /// A number beyond the newest event is a violation, not an empty page.
    async fn a_number_beyond_the_newest_is_rejected(platform: &Platform) {
        let client = platform.client().await;
        deliver(&client, &platform.courier().await).await;
        wait_for_number(&client, 3).await;

        for after in ["4", "-1", "x", "", "1.5", "9223372036854775807", "9223372036854775808"] {
            let response = client.get(&format!("{EVENTS}?after={after}")).await;
            assert_violations(&response, &["after"]);
        }
        let both = client.get("/api/events?after=x&itemsPerPage=0").await;
        assert_violations(&both, &["after", "itemsPerPage"]);
        let twice = client.get("/api/events?after=1&after=2").await;
        assert_violations(&twice, &["after"]);
    }

    /// As for webhooks, any scope of a store's client is sufficient.
    async fn a_client_that_may_register_webhooks_may_read_events(platform: &Platform) {
        for scope in ["deliveries", "tasks"] {
            let client = platform.client_for(&platform.demo_client, &[scope]).await;
            json_ld(&client.get(EVENTS).await, 200);
        }
        let operator = platform.client_for(&platform.operator_client, &["admin"]).await;
        assert_error(&operator.get(EVENTS).await, 403);
        assert_error(&platform.anonymous_client().get(EVENTS).await, 401);
    }
}

/// The first page of the log, once its oldest event has this number.
async fn wait_for_first_number(platform: &Platform, client: &ApiClient, first: i64) -> Value {
    client
        .wait_until(EVENTS, |page| {
            // Expiry is checked when the clock changes.
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
