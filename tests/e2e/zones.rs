//! Zones: applied by operators, spoken of by price lists.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tonic::Code;

use crate::harness::{
    ApiClient, Platform, Twin,
    definitions::{Definitions, violated_fields, zone},
};

/// Around 48.856, 2.354; by degrees, far smaller than any other distance here.
const MARAIS: [f64; 4] = [2.34, 48.84, 2.36, 48.86];
const ELSEWHERE: [f64; 4] = [3.34, 48.84, 3.36, 48.86];

const LIST: &str = "currency = \"EUR\"\ntax = { name = \"VAT\", rate = 2000 }\n\
                    strategy = \"first\"\n\n\
                    [[rule]]\nname = \"In\"\nwhen = 'in_zone(dropoff.address, \"Marais\")'\nprice = 300\n\n\
                    [[rule]]\nname = \"Out\"\nwhen = \"true\"\nprice = 900\n";

on_both_databases! {
    async fn a_zone_decides_a_price_from_when_it_is_applied(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        let client = platform.client().await;
        let unknown = definitions
            .apply_price_list(&platform.store, LIST)
            .await
            .unwrap_err();
        assert_eq!(violated_fields(&unknown), ["7:34"]);

        let first = definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        definitions.apply_price_list(&platform.store, LIST).await.unwrap();
        assert_eq!((first.version, price(&client).await), (1, 300));

        let moved = definitions.apply_zones(&zone("Marais", ELSEWHERE)).await.unwrap();
        assert_eq!((moved.version, price(&client).await), (2, 900));

        // Another zone leaves it where it is.
        let both = definitions.apply_zones(&zone("Port", MARAIS)).await.unwrap();
        assert_eq!((both.version, price(&client).await), (3, 900));
        let names: Vec<_> = both.zones.iter().map(|zone| zone.display_name.as_str()).collect();
        assert_eq!(names, ["Marais", "Port"]);
    }

    async fn zones_are_shown_as_they_can_be_applied(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        assert_eq!(definitions.zones(None).await.unwrap(), proto::ZoneSet::default());

        definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        let applied = definitions.apply_zones(&zone("Port", ELSEWHERE)).await.unwrap();
        let all = definitions.zones(None).await.unwrap();
        let one = definitions.zones(Some("Port")).await.unwrap();

        assert_eq!(all, applied);
        assert_eq!(one.zones, all.zones[1..]);
        let shown: Value = serde_json::from_str(&one.definition).unwrap();
        assert_eq!(shown["features"][0]["properties"], json!({ "name": "Port" }));
        assert_eq!(shown["features"].as_array().unwrap().len(), 1);
        let [west, south, east, north] = ELSEWHERE;
        assert_eq!(
            one.zones[0],
            proto::Zone {
                display_name: "Port".to_owned(),
                corners: 5,
                south,
                west,
                north,
                east,
            }
        );
        let again = definitions.apply_zones(&all.definition).await.unwrap();
        assert_eq!((again.version, again.definition), (3, all.definition));
        let missing = definitions.zones(Some("Harbour")).await.unwrap_err();
        assert_eq!(missing.code(), Code::NotFound);
    }

    async fn zones_applied_at_once_are_all_there(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        let names: Vec<_> = (0..6).map(|number| format!("Zone {number}")).collect();

        let applied = join_all(names.iter().map(|name| {
            let definitions = &definitions;
            async move { definitions.apply_zones(&zone(name, MARAIS)).await }
        }))
        .await;

        let mut versions: Vec<_> = applied.into_iter().map(|set| set.unwrap().version).collect();
        versions.sort_unstable();
        assert_eq!(versions, [1, 2, 3, 4, 5, 6]);
        let all = definitions.zones(None).await.unwrap();
        let found: Vec<_> = all.zones.into_iter().map(|zone| zone.display_name).collect();
        assert_eq!(found, names);
    }

    async fn a_mistake_in_zones_is_told_with_its_place_and_changes_nothing(platform: &Platform) {
        let definitions = Definitions::of_the_operator(platform).await;
        let sound = zone("Marais", MARAIS);
        let applied = definitions.apply_zones(&sound).await.unwrap();

        let mut places = Vec::new();
        for (wrong, place) in [
            (sound.replace("48.84", "98.84"), "5:30"),
            (sound.replace("Polygon", "Point"), "4:28"),
            (sound.replace("\"name\"", "\"nom\""), "3:51"),
            ("nonsense".to_owned(), "1:2"),
            (String::new(), "1:1"),
        ] {
            let refused = definitions.apply_zones(&wrong).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{wrong}");
            places.push((violated_fields(&refused).join(" "), place));
        }
        for (found, place) in &places {
            assert_eq!(found, place, "{places:?}");
        }
        let shop = Definitions::of(platform, &platform.demo_client, &["deliveries"]).await;
        let forbidden = shop.apply_zones(&sound).await.unwrap_err();
        assert_eq!(forbidden.code(), Code::PermissionDenied);
        assert_eq!(definitions.zones(None).await.unwrap(), applied);
    }
}

/// As above, with two cores over one database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_applied_at_one_core_decides_prices_at_another() {
    let Some(twins) = Twin::start_two().await else {
        return;
    };
    let [first, second] = &twins;
    let there = second.client().await;
    let operator = first.operator().await;
    operator.apply_zones(&zone("Marais", MARAIS)).await;
    operator.apply_price_list(&first.store, LIST).await;
    until_price(&there, 300).await;

    operator.apply_zones(&zone("Marais", ELSEWHERE)).await;

    until_price(&there, 900).await;
    for twin in twins {
        twin.stop().await;
    }
}

/// Generous, as much else may run on this machine.
async fn until_price(client: &ApiClient, amount: i64) {
    let asking = async { while price(client).await != amount {} };
    tokio::time::timeout(Duration::from_secs(30), asking)
        .await
        .unwrap_or_else(|_| panic!("the price never becomes {amount}"));
}

async fn price(client: &ApiClient) -> i64 {
    let order = json!({
        "pickup": { "address": { "streetAddress": "Here", "latLng": [48.8566, 2.3530] } },
        "dropoff": {
            "address": { "streetAddress": "There", "latLng": [48.8558, 2.3551] },
            "before": "2020-04-03 13:00",
        },
    });
    let price = client.post("/api/retail_prices/calculate", order).await;
    price.expect(200)["amount"].as_i64().unwrap()
}
