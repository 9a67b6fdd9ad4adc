//! When the parcel will probably arrive.

use delivery::Settings;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{draft, open, path, text};
use crate::harness::{Database, Platform, iri, raw, reserve_addr};

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

/// An order of today in the list of a courier.
async fn order(platform: &Platform, courier: &str) -> Value {
    let mut draft = draft();
    draft["externalReference"] = json!(null);
    draft["dropoff"]["before"] = json!(null);
    draft["dropoff"]["timeSlot"] = json!("2020-04-02 11:00-14:00");
    let order = platform.client().await.create_delivery(draft).await;
    let assign = [
        "tasks",
        "assign",
        "--courier",
        courier,
        iri(&order["dropoff"]),
    ];
    platform.run_delivery(&assign).await;
    order
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_of_the_estimate_that_was_shown_last_is_measured() {
    let addr = reserve_addr();
    let with_metrics = |settings: &mut Settings| settings.health_listen = Some(addr);
    let platform = Platform::start_with(Database::sqlite(), with_metrics).await;
    let courier = platform.operator().await.create_courier("Ada").await;
    let order = order(&platform, &courier).await;
    for (kind, minutes) in [("pickup", 5), ("dropoff", 10)] {
        platform.advance(SignedDuration::from_mins(minutes));
        let complete = ["tasks", "complete", iri(&order[kind])];
        platform.run_delivery(&complete).await;
        open(&platform, &path(&platform, &order), "en").await;
    }

    let metrics = raw::metrics(addr).await;

    // At 11:15, of 11:05 to 11:15.
    let sum = r#"delivery_estimate_error_seconds_sum{arrival="inside"} 300.0"#;
    assert!(metrics.lines().any(|line| line == sum), "{metrics}");
    platform.stop().await;
}

on_both_databases! {
    async fn a_page_shows_a_range_that_follows_the_courier_and_ends(platform: &Platform) {
        let courier = platform.operator().await.create_courier("Ada").await;
        let orders = [order(platform, &courier).await, order(platform, &courier).await];
        let (first, second) = (&orders[0], &orders[1]);
        let page = path(platform, second);
        let task = |order: &Value, kind: &str| iri(&order[kind]).to_owned();
        let minutes = |minutes| platform.advance(SignedDuration::from_mins(minutes));
        assert_eq!(times(platform, &page).await, [PROMISED]);

        // Two stops of four minutes are before it, all at one place.
        minutes(5);
        platform.run_delivery(&["tasks", "complete", &task(second, "pickup")]).await;
        let expected = ["Expected: 2 April, 11:10–11:30", "Estimated at 11:05 from the courier’s stops.", PROMISED];
        assert_eq!(times(platform, &page).await, expected);
        assert_eq!(times(platform, &path(platform, first)).await, [PROMISED], "it is not collected");

        minutes(5);
        for kind in ["pickup", "dropoff"] {
            platform.run_delivery(&["tasks", "complete", &task(first, kind)]).await;
        }
        let expected = ["Expected: 2 April, 11:10–11:20", "Estimated at 11:10 from the courier’s stops.", PROMISED];
        assert_eq!(times(platform, &page).await, expected);

        minutes(20);
        assert_eq!(times(platform, &page).await, expected);
        minutes(1);
        assert_eq!(times(platform, &page).await, [PROMISED, "There is no current estimate."]);

        platform.run_delivery(&["tasks", "unassign", &task(second, "dropoff")]).await;
        assert_eq!(times(platform, &page).await, [PROMISED]);
    }
}
