//! `GET /api/deliveries`: newest first, a page at a time.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::order;
use crate::harness::{
    ApiClient, Faults, Platform,
    assertions::{assert_error, json_ld},
};

const DELIVERIES: &str = "/api/deliveries";

on_both_databases! {
    /// "list, newest first"; a collection's members have no context of their own.
    async fn a_list_shows_a_stores_deliveries_newest_first(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        let mut expected = created(platform, &client, 3).await;
        expected.reverse();
        let cancelled = expected[1]["@id"].as_str().unwrap().to_owned();
        client.delete(&cancelled).await.expect(204);
        expected[1] = json_ld(&client.get(&cancelled).await, 200);
        for delivery in &mut expected {
            delivery.as_object_mut().unwrap().remove("@context");
        }

        let list = json_ld(&client.get(DELIVERIES).await, 200);
        let collection = |members: Value| {
            json!({
                "@context": "/api/contexts/Delivery",
                "@id": DELIVERIES,
                "@type": "hydra:Collection",
                "hydra:member": members,
                "hydra:view": {
                    "@id": DELIVERIES,
                    "@type": "hydra:PartialCollectionView",
                    "hydra:first": DELIVERIES,
                },
            })
        };
        assert_eq!(list, collection(json!(expected)));
        assert_eq!(
            json_ld(&other.get(DELIVERIES).await, 200),
            collection(json!([]))
        );

        let tasks_alone = platform.client_of(&platform.demo_client, &["tasks"]).await;
        assert_error(&tasks_alone.get(DELIVERIES).await, 403);
        assert_error(&platform.stranger().get(DELIVERIES).await, 401);
    }

    /// Each delivery once, whichever way the pages are walked, those made at the same instant
    /// included, and undisturbed by those that come meanwhile.
    async fn pages_are_walked_to_the_end_and_back(platform: &Platform) {
        let client = platform.client().await;
        let mut expected = ids(&created(platform, &client, 4).await);
        for _ in 0..3 {
            expected.push(id(&client.create_delivery(order()).await));
        }
        expected[4..].sort();
        expected.reverse();

        let mut walked = Vec::new();
        let mut path = format!("{DELIVERIES}?itemsPerPage=3");
        let mut back = None;
        loop {
            let page = json_ld(&client.get(&path).await, 200);
            let view = &page["hydra:view"];
            assert_eq!(view["@id"], path);
            assert_eq!(view["hydra:first"], format!("{DELIVERIES}?itemsPerPage=3"));
            assert_eq!(view.get("hydra:previous").is_some(), !walked.is_empty());
            walked.extend(ids(page["hydra:member"].as_array().unwrap()));
            platform.advance(SignedDuration::from_secs(1));
            client.create_delivery(order()).await;
            let Some(next) = view["hydra:next"].as_str() else {
                back = view["hydra:previous"].as_str().map(str::to_owned).or(back);
                break;
            };
            path = next.to_owned();
        }
        assert_eq!(walked, expected);

        // And back, up to the newest of those that came.
        let mut pages = Vec::new();
        while let Some(path) = back {
            let page = json_ld(&client.get(&path).await, 200);
            pages.push(ids(page["hydra:member"].as_array().unwrap()));
            assert!(page["hydra:view"]["hydra:next"].is_string(), "{page}");
            back = page["hydra:view"]["hydra:previous"].as_str().map(str::to_owned);
        }
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3]);
        let walked_back: Vec<_> = pages.into_iter().rev().flatten().collect();
        assert_eq!(walked_back[3..], expected[..6]);
        let all = json_ld(&client.get(DELIVERIES).await, 200);
        let all = ids(all["hydra:member"].as_array().unwrap());
        assert_eq!(all[..9], walked_back);
    }

    /// "page size 30", up to 100.
    async fn a_page_has_as_many_as_asked_for(platform: &Platform) {
        let client = platform.client().await;
        for _ in 0..31 {
            client.create_delivery(order()).await;
        }

        for (query, count, has_next) in [
            ("", 30, true),
            ("?itemsPerPage=1", 1, true),
            ("?itemsPerPage=31", 31, false),
            ("?itemsPerPage=100", 31, false),
            ("?cursor=", 30, true),
        ] {
            let page = json_ld(&client.get(&format!("{DELIVERIES}{query}")).await, 200);
            let members = page["hydra:member"].as_array().unwrap();
            assert_eq!(members.len(), count, "{query}");
            assert_eq!(page["hydra:view"].get("hydra:next").is_some(), has_next, "{query}");
        }
    }

    /// Whatever a cursor is made of, it is a violation or a place in the caller's own list.
    async fn a_hostile_cursor_is_a_violation_and_never_another_stores_list(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.client_of_a_new_store().await;
        created(platform, &client, 3).await;
        let first = json_ld(&client.get(&format!("{DELIVERIES}?itemsPerPage=1")).await, 200);
        let next = first["hydra:view"]["hydra:next"].as_str().unwrap().to_owned();
        let (_, good) = next.rsplit_once('=').unwrap();
        let mut far = URL_SAFE_NO_PAD.decode(good).unwrap();
        far[2] = 0x7f;
        let far = URL_SAFE_NO_PAD.encode(far);
        let mut faults = Faults::default();

        for wrong in [
            "x",
            "0",
            "%00",
            "%FF%FE",
            "%27%20OR%201%3D1",
            "AAAA",
            &"A".repeat(36),
            &"A".repeat(4000),
            &format!("{good}%3D"),
            &good[1..],
            &far,
        ] {
            let answer = client.get(&format!("{DELIVERIES}?cursor={wrong}")).await;
            faults.violations(wrong, &answer, &["cursor"]);
        }
        for wrong in ["0", "101", "-1", "1.5", "", "ten", "99999999999999999999"] {
            let answer = client.get(&format!("{DELIVERIES}?itemsPerPage={wrong}")).await;
            faults.violations(wrong, &answer, &["itemsPerPage"]);
        }
        for wrong in [
            "?itemsPerPage=0&cursor=x",
            "?itemsPerPage=x&cursor=x",
            "?cursor=&cursor=&itemsPerPage=1&itemsPerPage=1",
        ] {
            let answer = client.get(&format!("{DELIVERIES}{wrong}")).await;
            faults.violations(wrong, &answer, &["itemsPerPage", "cursor"]);
        }
        faults.none();

        let elsewhere = json_ld(&other.get(&next).await, 200);
        assert_eq!(elsewhere["hydra:member"], json!([]));
    }
}

/// Makes deliveries, a second apart.
async fn created(platform: &Platform, client: &ApiClient, count: usize) -> Vec<Value> {
    let mut deliveries = Vec::new();
    for _ in 0..count {
        deliveries.push(client.create_delivery(order()).await);
        platform.advance(SignedDuration::from_secs(1));
    }
    deliveries
}

fn ids(deliveries: &[Value]) -> Vec<String> {
    deliveries.iter().map(id).collect()
}

fn id(delivery: &Value) -> String {
    delivery["id"].as_str().unwrap().to_owned()
}
