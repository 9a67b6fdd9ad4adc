//! Zones: applied by operators, used by price lists.

use futures_util::future::join_all;
use serde_json::{Value, json};
use tonic::Code;

use crate::harness::{
    Platform,
    definitions::{Definitions, violation_fields, zone},
    wait_for_price,
};

/// Boxes (west, south, east, north): `MARAIS` contains the dropoff of [`draft`], `ELSEWHERE` does
/// not.
const MARAIS: [f64; 4] = [2.34, 48.84, 2.36, 48.86];
const ELSEWHERE: [f64; 4] = [3.34, 48.84, 3.36, 48.86];

const LIST: &str = "currency = \"EUR\"\ntax = { name = \"VAT\", rate = 2000 }\n\
                    strategy = \"first\"\n\n\
                    [[rule]]\nname = \"In\"\nwhen = 'in_zone(dropoff.address, \"Marais\")'\nprice = 300\n\n\
                    [[rule]]\nname = \"Out\"\nwhen = \"true\"\nprice = 900\n";

on_both_databases! {
    async fn an_applied_zone_takes_effect_in_prices(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        let client = platform.client().await;
        let unknown = definitions
            .apply_price_list(&platform.store, LIST)
            .await
            .unwrap_err();
        assert_eq!(violation_fields(&unknown), ["7:34"]);

        let first = definitions.apply_zones(&zone("Marais", MARAIS)).await.unwrap();
        definitions.apply_price_list(&platform.store, LIST).await.unwrap();
        assert_eq!((first.version, client.calculate(&draft()).await), (1, 300));

        let moved = definitions.apply_zones(&zone("Marais", ELSEWHERE)).await.unwrap();
        assert_eq!((moved.version, client.calculate(&draft()).await), (2, 900));

        // Applying another zone keeps this one.
        let both = definitions.apply_zones(&zone("Port", MARAIS)).await.unwrap();
        assert_eq!((both.version, client.calculate(&draft()).await), (3, 900));
        let names: Vec<_> = both.zones.iter().map(|zone| zone.display_name.as_str()).collect();
        assert_eq!(names, ["Marais", "Port"]);
    }

    async fn zones_are_shown_as_an_applicable_definition(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
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
                positions: 5,
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

    async fn zones_applied_concurrently_are_all_kept(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
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

    async fn an_error_in_zones_is_reported_with_its_position_and_changes_nothing(platform: &Platform) {
        let definitions = Definitions::as_operator(platform).await;
        let valid = zone("Marais", MARAIS);
        let applied = definitions.apply_zones(&valid).await.unwrap();

        let mut positions = Vec::new();
        for (invalid, position) in [
            (valid.replace("48.84", "98.84"), "5:32"),
            (valid.replace("Polygon", "Point"), "4:28"),
            (valid.replace("\"name\"", "\"nom\""), "3:51"),
            ("nonsense".to_owned(), "1:2"),
            (String::new(), "1:1"),
        ] {
            let rejected = definitions.apply_zones(&invalid).await.unwrap_err();
            assert_eq!(rejected.code(), Code::InvalidArgument, "{invalid}");
            positions.push((violation_fields(&rejected).join(" "), position));
        }
        for (actual, expected) in &positions {
            assert_eq!(actual, expected, "{positions:?}");
        }
        let shop = Definitions::as_client(platform, &platform.demo_client, &["deliveries"]).await;
        let forbidden = shop.apply_zones(&valid).await.unwrap_err();
        assert_eq!(forbidden.code(), Code::PermissionDenied);
        assert_eq!(definitions.zones(None).await.unwrap(), applied);
    }
}

/// With two cores on one database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zone_applied_on_one_core_takes_effect_on_another() {
    let Some(platforms) = Platform::start_two().await else {
        return;
    };
    let [first, second] = &platforms;
    let client = second.client().await;
    let operator = first.operator().await;
    operator.apply_zones(&zone("Marais", MARAIS)).await;
    operator.apply_price_list(&first.store, LIST).await;
    wait_for_price(&client, &draft(), 300).await;

    operator.apply_zones(&zone("Marais", ELSEWHERE)).await;

    wait_for_price(&client, &draft(), 900).await;
    Platform::stop_both(platforms).await;
}

fn draft() -> Value {
    json!({
        "pickup": { "address": { "streetAddress": "Here", "latLng": [48.8566, 2.3530] } },
        "dropoff": {
            "address": { "streetAddress": "There", "latLng": [48.8558, 2.3551] },
            "before": "2020-04-03 13:00",
        },
    })
}
