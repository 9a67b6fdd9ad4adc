//! When the parcel will probably arrive.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{draft, open, path, text};
use crate::harness::{Platform, iri};

const PROMISED: &str = "Promised: 2 April, 11:00–14:00";

/// The lines of a page about the time.
async fn times(platform: &Platform, page: &str) -> Vec<String> {
    let page = open(platform, page, "en").await;
    assert_eq!(page.status, 200);
    let lines = text(&page).into_iter().skip(1);
    lines
        .take_while(|line| !line.starts_with("Ordered"))
        .collect()
}

on_both_databases! {
    async fn a_page_shows_a_range_that_follows_the_courier_and_ends(platform: &Platform) {
        let client = platform.client().await;
        let mut orders = Vec::new();
        let courier = platform.operator().await.create_courier("Ada").await;
        for _ in 0..2 {
            let mut draft = draft();
            draft["externalReference"] = json!(null);
            draft["dropoff"]["before"] = json!(null);
            draft["dropoff"]["timeSlot"] = json!("2020-04-02 11:00-14:00");
            let order = client.create_delivery(draft).await;
            let dropoff = iri(&order["dropoff"]).to_owned();
            platform.run_delivery(&["tasks", "assign", "--courier", &courier, &dropoff]).await;
            orders.push(order);
        }
        let (first, second) = (&orders[0], &orders[1]);
        let page = path(platform, second);
        let task = |order: &Value, kind: &str| iri(&order[kind]).to_owned();
        let minutes = |minutes| platform.advance(SignedDuration::from_mins(minutes));
        assert_eq!(times(platform, &page).await, [PROMISED]);

        // Two stops of four minutes are before it, all at one place.
        minutes(5);
        platform.run_delivery(&["tasks", "complete", &task(second, "pickup")]).await;
        let expected = ["Expected: 2 April, 11:10–11:30", "from the courier’s stops, 11:05", PROMISED];
        assert_eq!(times(platform, &page).await, expected);
        assert_eq!(times(platform, &path(platform, first)).await, [PROMISED], "it is not collected");

        minutes(5);
        for kind in ["pickup", "dropoff"] {
            platform.run_delivery(&["tasks", "complete", &task(first, kind)]).await;
        }
        let expected = ["Expected: 2 April, 11:10–11:20", "from the courier’s stops, 11:10", PROMISED];
        assert_eq!(times(platform, &page).await, expected);

        minutes(20);
        assert_eq!(times(platform, &page).await, expected);
        minutes(1);
        assert_eq!(times(platform, &page).await, [PROMISED, "There is no current estimate."]);

        platform.run_delivery(&["tasks", "unassign", &task(second, "dropoff")]).await;
        assert_eq!(times(platform, &page).await, [PROMISED]);
    }
}
