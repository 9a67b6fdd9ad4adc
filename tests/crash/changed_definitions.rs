//! Definitions that are applied at one core while the other core plans deliveries with cached ones.

use serde_json::{Value, json};

use crate::{caller::Caller, cluster::Cluster, failure::Failure, one_processor};

/// How often a definition changes.
const CHANGES: usize = 5;

/// Enough for both cores to create some of them.
const CREATES: usize = 4;

async fn create(shop: &Caller, window: Option<&str>) -> Result<Value, Failure> {
    let mut draft = json!({
        "dropoff": {
            "address": { "streetAddress": "48 Rue de Rivoli", "latLng": [48.8558, 2.3551] },
        },
    });
    match window {
        Some(window) => draft["dropoff"]["timeSlot"] = window.into(),
        None => draft["dropoff"]["before"] = "tomorrow 23:00".into(),
    }
    shop.post("/api/deliveries", &draft, None).await
}

/// The code of the only violation of a request.
fn violation(error: &Failure) -> String {
    let Failure::ErrorResponse { body, .. } = error else {
        panic!("{error}");
    };
    let body: Value = serde_json::from_str(body).unwrap();
    let violations = body["violations"].as_array();
    assert_eq!(violations.map(Vec::len), Some(1), "{body}");
    body["violations"][0]["code"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_core_creates_deliveries_with_the_price_list_applied_last() {
    let _processor = one_processor().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;

    for amount in 1..=CHANGES {
        cluster.apply_price_list(&format!(
            "currency = \"EUR\"
             tax = {{ name = \"VAT\", rate = 2000 }}
             strategy = \"first\"
             [[rule]]
             name = \"Anywhere\"
             when = \"distance >= 0\"
             price = {amount}"
        ));
        for _ in 0..CREATES {
            let delivery = create(&shop, None).await.unwrap();
            assert_eq!(delivery["price"]["amount"], amount, "{delivery}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_core_applies_the_time_slot_applied_last() {
    let _processor = one_processor().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;
    let apply = |rule: &str| {
        cluster.apply_time_slot(&format!(
            "name = \"Days\"
             opening_hours = [\"Mo-Su 00:00-24:00\"]
             interval = \"14 days\"
             {rule}"
        ));
    };

    for _ in 0..CHANGES {
        apply("");
        for _ in 0..CREATES {
            create(&shop, None).await.unwrap();
        }
        apply("slots = \"required\"");
        for _ in 0..CREATES {
            let refused = create(&shop, None).await.unwrap_err();
            assert_eq!(violation(&refused), "time_slot_required");
        }
    }

    let choices = shop.get("/api/time_slots/choices").await.unwrap();
    let window = choices["choices"][1]["value"].as_str().unwrap();
    for capacity in 1..=CHANGES {
        apply(&format!("capacity = {capacity}"));
        create(&shop, Some(window)).await.unwrap();
        for _ in 0..CREATES {
            let refused = create(&shop, Some(window)).await.unwrap_err();
            assert_eq!(violation(&refused), "time_slot_refused");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_core_prices_deliveries_by_the_zones_applied_last() {
    let _processor = one_processor().await;
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let shop = cluster.shop().await;
    // A square with an edge of half a degree.
    let apply = |west: f64| {
        let (south, east, north) = (48.6, west + 0.5, 49.1);
        let corners = [
            [west, south],
            [east, south],
            [east, north],
            [west, north],
            [west, south],
        ];
        cluster.apply_zones(&json!({
            "type": "FeatureCollection",
            "features": [{
                "type": "Feature",
                "properties": { "name": "Centre" },
                "geometry": { "type": "Polygon", "coordinates": [corners] },
            }],
        }));
    };
    apply(2.1);
    cluster.apply_price_list(
        "currency = \"EUR\"
         tax = { name = \"VAT\", rate = 2000 }
         strategy = \"first\"
         [[rule]]
         name = \"Centre\"
         when = 'in_zone(dropoff.address, \"Centre\")'
         price = 100
         [[rule]]
         name = \"Elsewhere\"
         when = \"distance >= 0\"
         price = 200",
    );

    for _ in 0..CHANGES {
        for (west, amount) in [(2.1, 100), (2.5, 200)] {
            apply(west);
            for _ in 0..CREATES {
                let delivery = create(&shop, None).await.unwrap();
                assert_eq!(delivery["price"]["amount"], amount, "{delivery}");
            }
        }
    }
}
