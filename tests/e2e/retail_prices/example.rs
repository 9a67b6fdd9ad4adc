//! The example price lists are valid and give the documented prices.

use serde_json::{Value, json};

use super::{CALCULATE, draft};
use crate::harness::{Platform, definitions::Definitions};

const LIST: &str = include_str!("../../../examples/prices.toml");
const ZONES: &str = include_str!("../../../examples/zones.geojson");
const PRICING_PAGE: &str = include_str!("../../../docs/pricing.md");

on_both_databases! {
    async fn the_example_list_gives_the_expected_prices(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(ZONES).await.unwrap();
        let applied = definitions
            .apply_price_list(&platform.store, LIST)
            .await
            .unwrap();
        assert_eq!(applied.warnings, [""; 0]);
        let client = platform.client().await;
        let outside = json!([48.9362, 2.3574]);

        // The clock is at Thursday, 11:00.
        for (changes, amount) in [
            (&[][..], 590),
            // 11.6 km: five started steps of 2 km beyond 3 km.
            (&[("/dropoff/address/latLng", outside)], 790 + 5 * 220),
            (&[("/dropoff/weight", json!(10_001))], 590 + 250),
            (&[("/dropoff/weight", json!(10_000))], 590),
            (&[("/dropoff/packages", xl(1))], 590 + 1240),
            (&[("/dropoff/packages", xl(3))], 590 + 1240 + 2 * 420),
            (&[("/dropoff/before", json!("2020-04-02 20:00"))], 590 + 300),
            (&[("/dropoff/before", json!("2020-04-02 12:59"))], 767),
            (&[("/dropoff/before", json!("2020-04-02 13:00"))], 590),
            (&[("/dropoff/before", json!("2020-04-05 13:00"))], 708),
            (&[("/dropoff/timeSlot", json!("2020-04-03 12:00-14:00"))], 531),
            (&[("/dropoff/timeSlot", json!("2020-04-03 12:00-13:00"))], 590),
        ] {
            let mut draft = draft();
            for (member, value) in changes {
                let (parent, name) = member.rsplit_once('/').unwrap();
                draft.pointer_mut(parent).unwrap()[name] = value.clone();
            }
            let price = client.post(CALCULATE, draft).await.expect(200);
            assert_eq!(price["amount"], amount, "{changes:?}: {}", price["calculation"]);
        }
        let mut unknown = draft();
        unknown["dropoff"]["packages"] = json!([{ "type": "XXL", "quantity": 1 }]);
        let rejected = client.post(CALCULATE, unknown).await;
        assert_eq!(rejected.violation_paths(), ["dropoff.packages[0].type"]);
    }

    /// The price list in `docs/pricing.md` is complete and valid as printed.
    async fn the_list_of_the_pricing_page_can_be_applied_as_printed(platform: &Platform) {
        let (_, after) = PRICING_PAGE.split_once("```toml\n").unwrap();
        let (list, _) = after.split_once("```\n").unwrap();
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(ZONES).await.unwrap();
        let applied = definitions.apply_price_list(&platform.store, list).await.unwrap();
        assert_eq!(applied.warnings, [""; 0]);
        let client = platform.client().await;

        for (member, value, amount) in [
            ("/dropoff/tags", json!([]), 590),
            ("/dropoff/address/latLng", json!([48.9362, 2.3574]), 790 + 5 * 220),
            ("/dropoff/weight", json!(10_001), 590 + 250),
            ("/dropoff/packages", xl(3), 590 + 1240 + 2 * 420),
            ("/dropoff/timeSlot", json!("2020-04-03 12:00-14:00"), 531),
            ("/dropoff/before", json!("2020-04-05 13:00"), 708),
        ] {
            let mut draft = draft();
            let (parent, name) = member.rsplit_once('/').unwrap();
            draft.pointer_mut(parent).unwrap()[name] = value;
            let price = client.post(CALCULATE, draft).await.expect(200);
            assert_eq!(price["amount"], amount, "{member}: {}", price["calculation"]);
        }
        let mut unknown = draft();
        unknown["dropoff"]["packages"] = json!([{ "type": "XXL", "quantity": 1 }]);
        for path in [CALCULATE, "/api/deliveries/assert", "/api/deliveries"] {
            let rejected = client.post(path, unknown.clone()).await;
            assert_eq!(rejected.violation_paths(), ["dropoff.packages[0].type"]);
        }
    }

    async fn a_draft_has_the_same_price_calculated_asserted_and_created(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        definitions.apply_zones(ZONES).await.unwrap();
        definitions
            .apply_price_list(&platform.store, LIST)
            .await
            .unwrap();
        let client = platform.client().await;

        for number in 0..24_u32 {
            let mut draft = draft();
            let dropoff = &mut draft["dropoff"];
            dropoff["before"] = json!(format!("2020-04-{:02} {:02}:30", 2 + number % 5, 11 + number % 12));
            dropoff["weight"] = json!(number * 1500);
            dropoff["address"]["latLng"] = json!([48.8558 + f64::from(number) / 250.0, 2.3551]);
            if number % 3 == 0 {
                dropoff["packages"] = xl(1 + number % 4);
            }

            let calculated = client.post(CALCULATE, draft.clone()).await.expect(200);
            let asserted = client.post("/api/deliveries/assert", draft.clone()).await.expect(200);
            let created = client.create_delivery(draft).await;

            for member in ["amount", "currency", "tax"] {
                assert_eq!(asserted["price"][member], calculated[member]);
                assert_eq!(created["price"][member], calculated[member]);
            }
        }
    }
}

fn xl(quantity: u32) -> Value {
    json!([{ "type": "XL", "quantity": quantity }])
}
