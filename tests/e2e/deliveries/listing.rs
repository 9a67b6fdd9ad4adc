//! `GET /api/deliveries`: order and pagination.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::draft;
use crate::harness::{
    ApiClient, Mismatches, Platform,
    assertions::{assert_error, json_ld},
};

const DELIVERIES: &str = "/api/deliveries";

on_both_databases! {
    /// "list, newest first"; the members of a collection have no `@context`.
    async fn a_list_has_a_stores_deliveries_newest_first(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let mut expected = create(platform, &client, 3).await;
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
                "hydra:search": list["hydra:search"],
            })
        };
        assert_eq!(list["hydra:search"]["@type"], "hydra:IriTemplate");
        assert_eq!(list, collection(json!(expected)));
        assert_eq!(
            json_ld(&other.get(DELIVERIES).await, 200),
            collection(json!([]))
        );

        let tasks_only = platform.client_for(&platform.demo_client, &["tasks"]).await;
        assert_error(&tasks_only.get(DELIVERIES).await, 403);
        assert_error(&platform.anonymous_client().get(DELIVERIES).await, 401);
    }

    /// Each delivery appears once in both directions, including those created at the same instant on
    /// either side of a page's edge, and regardless of deliveries created meanwhile.
    async fn pages_are_read_to_the_end_and_back(platform: &Platform) {
        let client = platform.client().await;
        let mut expected = ids(&create(platform, &client, 4).await);
        for _ in 0..3 {
            expected.push(id(&client.create_delivery(draft()).await));
        }
        expected[4..].sort();
        expected.reverse();

        let mut forward = Vec::new();
        let first = format!("{DELIVERIES}?itemsPerPage=2");
        let mut path = first.clone();
        let mut back = None;
        loop {
            let page = json_ld(&client.get(&path).await, 200);
            let view = &page["hydra:view"];
            assert_eq!(view["@id"], path);
            assert_eq!(view["hydra:first"], first);
            assert_eq!(view.get("hydra:previous").is_some(), !forward.is_empty());
            forward.extend(ids(page["hydra:member"].as_array().unwrap()));
            platform.advance(SignedDuration::from_secs(1));
            client.create_delivery(draft()).await;
            let Some(next) = view["hydra:next"].as_str() else {
                back = view["hydra:previous"].as_str().map(str::to_owned).or(back);
                break;
            };
            path = next.to_owned();
        }
        assert_eq!(forward, expected);

        // Back from the last page: six of the expected ones, then the four created meanwhile.
        let mut pages = Vec::new();
        while let Some(path) = back {
            let page = json_ld(&client.get(&path).await, 200);
            pages.push(ids(page["hydra:member"].as_array().unwrap()));
            assert!(page["hydra:view"]["hydra:next"].is_string(), "{page}");
            back = page["hydra:view"]["hydra:previous"].as_str().map(str::to_owned);
        }
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2; 5]);
        let backward: Vec<_> = pages.into_iter().rev().flatten().collect();
        assert_eq!(backward[4..], expected[..6]);
        let all = json_ld(&client.get(DELIVERIES).await, 200);
        let all = ids(all["hydra:member"].as_array().unwrap());
        assert_eq!(all[..10], backward);
    }

    /// 30 by default, up to 100.
    async fn a_page_has_the_requested_number_of_members(platform: &Platform) {
        let client = platform.client().await;
        for _ in 0..31 {
            client.create_delivery(draft()).await;
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

    /// A cursor is a violation or a position in the caller's own list.
    async fn an_invalid_or_foreign_cursor_never_returns_another_stores_deliveries(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        create(platform, &client, 3).await;
        let first = json_ld(&client.get(&format!("{DELIVERIES}?itemsPerPage=1")).await, 200);
        let next = first["hydra:view"]["hydra:next"].as_str().unwrap().to_owned();
        let (_, valid) = next.rsplit_once('=').unwrap();
        let mut out_of_range = URL_SAFE_NO_PAD.decode(valid).unwrap();
        // The first byte of the instant, which follows the version and the direction.
        out_of_range[2] = 0x7f;
        let out_of_range = URL_SAFE_NO_PAD.encode(out_of_range);
        let mut mismatches = Mismatches::default();

        for invalid in [
            "x",
            "0",
            "%00",
            "%FF%FE",
            "%27%20OR%201%3D1",
            "AAAA",
            &"A".repeat(36),
            &"A".repeat(4000),
            &format!("{valid}%3D"),
            &valid[1..],
            &out_of_range,
        ] {
            let response = client.get(&format!("{DELIVERIES}?cursor={invalid}")).await;
            mismatches.check_violations(invalid, &response, &["cursor"]);
        }
        for invalid in ["0", "101", "-1", "1.5", "", "ten", "99999999999999999999"] {
            let response = client.get(&format!("{DELIVERIES}?itemsPerPage={invalid}")).await;
            mismatches.check_violations(invalid, &response, &["itemsPerPage"]);
        }
        for invalid in [
            "?itemsPerPage=0&cursor=x",
            "?itemsPerPage=x&cursor=x",
            "?cursor=&cursor=&itemsPerPage=1&itemsPerPage=1",
        ] {
            let response = client.get(&format!("{DELIVERIES}{invalid}")).await;
            mismatches.check_violations(invalid, &response, &["itemsPerPage", "cursor"]);
        }
        mismatches.assert_none();

        let other_stores_page = json_ld(&other.get(&next).await, 200);
        assert_eq!(other_stores_page["hydra:member"], json!([]));
    }
}

/// Creates deliveries one second apart.
async fn create(platform: &Platform, client: &ApiClient, count: usize) -> Vec<Value> {
    let mut deliveries = Vec::new();
    for _ in 0..count {
        deliveries.push(client.create_delivery(draft()).await);
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
