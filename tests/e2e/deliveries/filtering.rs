//! `GET /api/deliveries` with filters: external reference, creation time, dropoff time, status.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{draft, draft_with};
use crate::harness::{
    ApiClient, Mismatches, Platform,
    assertions::{assert_violations, json_ld},
};

const DELIVERIES: &str = "/api/deliveries";

/// The ids of all deliveries that match a query, over all pages.
pub(crate) async fn matching_ids(client: &ApiClient, query: &str) -> Vec<Value> {
    let mut ids = Vec::new();
    let mut next = Some(format!("{DELIVERIES}?{query}"));
    while let Some(path) = next {
        let page = json_ld(&client.get(&path).await, 200);
        let members = page["hydra:member"].as_array().unwrap();
        ids.extend(members.iter().map(|member| member["id"].clone()));
        next = page["hydra:view"]["hydra:next"].as_str().map(str::to_owned);
    }
    ids
}

on_both_databases! {
    /// Inclusive at both ends, at the one-second precision of responses.
    async fn a_list_is_filtered_by_creation_time(platform: &Platform) {
        let client = platform.client().await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(client.create_delivery(draft()).await["id"].clone());
            platform.advance(SignedDuration::from_millis(60_500));
        }
        let [first, second, third, fourth] = ids.try_into().unwrap();
        let mut mismatches = Mismatches::default();

        for (query, expected) in [
            ("createdAt[after]=2020-04-02 11:01", vec![&fourth, &third, &second]),
            ("createdAt[after]=2020-04-02T09:01:00Z", vec![&fourth, &third, &second]),
            ("createdAt[after]=2020-04-02 11:01:01", vec![&fourth, &third]),
            ("createdAt[before]=2020-04-02 11:01:00", vec![&second, &first]),
            ("createdAt[before]=2020-04-02 11:00:59", vec![&first]),
            ("createdAt[after]=2020-04-02 11:01&createdAt[before]=2020-04-02 11:02:30", vec![&third, &second]),
            ("createdAt[after]=today", vec![&fourth, &third, &second, &first]),
            ("createdAt[after]=tomorrow", vec![]),
            ("createdAt[before]=yesterday", vec![]),
            ("itemsPerPage=1&createdAt[after]=2020-04-02 11:01", vec![&fourth, &third, &second]),
        ] {
            let query = query.replace(' ', "%20").replace('[', "%5B").replace(']', "%5D");
            mismatches.check_eq(&query, matching_ids(&client, &query).await.iter().collect(), expected);
        }
        mismatches.assert_none();
    }

    async fn a_list_is_filtered_by_dropoff_time(platform: &Platform) {
        let client = platform.client().await;
        let mut ids = Vec::new();
        for before in ["2020-04-03 10:00", "2020-04-03 12:00", "2020-04-04 12:00"] {
            let draft = draft_with("dropoff.before", json!(before));
            ids.push(client.create_delivery(draft).await["id"].clone());
        }
        let [early, noon, later] = ids.try_into().unwrap();
        let mut mismatches = Mismatches::default();

        for (query, expected) in [
            ("dropoff.before%5Bafter%5D=2020-04-03T12:00", vec![&later, &noon]),
            ("dropoff.before%5Bbefore%5D=2020-04-03T12:00", vec![&noon, &early]),
            ("dropoff.before%5Bafter%5D=tomorrow&dropoff.before%5Bbefore%5D=tomorrow%2011:00", vec![&early]),
            ("dropoff.before%5Bafter%5D=2021-01-01", vec![]),
        ] {
            mismatches.check_eq(query, matching_ids(&client, query).await.iter().collect(), expected);
        }
        mismatches.assert_none();
    }

    /// The filter `status` is on the delivery's status, which is DONE when both tasks are.
    /// Cancelling does not change it.
    async fn a_list_is_filtered_by_status_and_cancellation(platform: &Platform) {
        let client = platform.client().await;
        let courier = platform.courier().await;
        let mut created = Vec::new();
        for _ in 0..4 {
            created.push(client.create_delivery(draft()).await);
        }
        let [new, picked, done, cancelled] = [0, 1, 2, 3].map(|index: usize| &created[index]);
        courier.complete(picked["pickup"]["@id"].as_str().unwrap()).await;
        for task in ["dropoff", "pickup"] {
            courier.complete(done[task]["@id"].as_str().unwrap()).await;
        }
        client.delete(cancelled["@id"].as_str().unwrap()).await.expect(204);
        let mut mismatches = Mismatches::default();

        for (query, expected) in [
            ("status=TODO", vec![cancelled, picked, new]),
            ("status=TODO&exists%5BcancelledAt%5D=false", vec![picked, new]),
            ("status=DONE", vec![done]),
            ("exists%5BcancelledAt%5D=true", vec![cancelled]),
            ("exists%5BcancelledAt%5D=1&status=DONE", vec![]),
            ("exists%5BcancelledAt%5D=0", vec![done, picked, new]),
            ("status=TODO&itemsPerPage=1", vec![cancelled, picked, new]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|delivery| &delivery["id"]).collect();
            mismatches.check_eq(query, matching_ids(&client, query).await.iter().collect(), expected);
        }
        mismatches.assert_none();
    }

    /// Ignoring a mistyped filter would return every delivery.
    async fn an_unknown_or_invalid_filter_is_a_violation(platform: &Platform) {
        let client = platform.client().await;
        let mut mismatches = Mismatches::default();

        for (query, path) in [
            ("unknown=x", "unknown"),
            ("page=2", "page"),
            ("externalreference=x", "externalreference"),
            ("createdAt=today", "createdAt"),
            ("createdAt%5Bafter%5D=soonish", "createdAt[after]"),
            ("createdAt%5Bbefore%5D=", "createdAt[before]"),
            ("dropoff.before%5Bafter%5D=%00", "dropoff.before[after]"),
            ("dropoff.before%5Bbefore%5D=2020-02-30", "dropoff.before[before]"),
            ("status=CANCELLED", "status"),
            ("status=TODO&status=TODO", "status"),
            ("state=DOING", "state"),
            ("state=created&state=created", "state"),
            ("exists%5BcancelledAt%5D=yes", "exists[cancelledAt]"),
            ("externalReference=", "externalReference"),
        ] {
            let response = client.get(&format!("{DELIVERIES}?{query}")).await;
            mismatches.check_violations(query, &response, &[path]);
        }
        mismatches.assert_none();
        let response = client
            .get(&format!("{DELIVERIES}?status=x&itemsPerPage=0&cursor=x&createdAt%5Bafter%5D=x&y=z"))
            .await;
        assert_violations(
            &response,
            &["status", "itemsPerPage", "cursor", "createdAt[after]", "y"],
        );
    }
}
