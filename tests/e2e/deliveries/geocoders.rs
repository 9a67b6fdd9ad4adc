//! `--geocoder`: external geocoders, called in the configured order; `--address-precision`.

use delivery::Settings;
use serde_json::json;

use super::draft_with;
use crate::harness::{Database, Platform, UpstreamServer, assertions::assert_violations};

const ADDRESS: &str = "7 Rue Nouvelle, 75020 Paris";
/// Nominatim's response for [`ADDRESS`].
const RESPONSE: &str = r#"[{"lat":"48.8700","lon":"2.3900","category":"place","addresstype":"place","display_name":"x","address":{"house_number":"7","road":"Rue Nouvelle","city":"Paris","postcode":"75020","country_code":"fr"}}]"#;

/// Nominatim's response for the town Lyon.
const LYON: &str = r#"[{"lat":"45.7600","lon":"4.8400","category":"boundary","addresstype":"city","address":{"city":"Lyon","country_code":"fr"}}]"#;

/// A Nominatim server that gives one response to every request except [`LYON`]'s, or 503; with a
/// value of `--geocoder`: the protocol and the server's URL.
async fn nominatim(response: Option<&'static str>) -> (UpstreamServer, String) {
    let server = UpstreamServer::start(move |target| match response {
        Some(_) if target.contains("q=Lyon&") => (200, LYON.to_owned()),
        Some(response) => (200, response.to_owned()),
        None => (503, String::new()),
    });
    let server = server.await;
    let spec = format!("nominatim={}", server.url);
    (server, spec)
}

/// Settings with the gazetteer first, then this geocoder.
fn with_geocoder(geocoder: &str) -> impl Fn(&mut Settings) {
    let geocoders: Vec<_> = ["gazetteer", geocoder]
        .map(|geocoder| geocoder.parse().unwrap())
        .into();
    move |settings| settings.geocoding.geocoders.clone_from(&geocoders)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_not_in_the_gazetteer_is_geocoded_once_by_the_next_geocoder() {
    let (nominatim, spec) = nominatim(Some(RESPONSE)).await;
    let platform = Platform::start_with(Database::sqlite(), with_geocoder(&spec)).await;
    let client = platform.client().await;

    for address in [ADDRESS, "7 RUE NOUVELLE 75020 PARIS"] {
        let draft = draft_with("dropoff.address", json!(address));
        let created = client.create_delivery(draft).await;
        let address = &created["dropoff"]["address"];
        assert_eq!(address["streetAddress"], "7 Rue Nouvelle, 75020 Paris");
        assert_eq!(address["geo"]["latitude"], 48.87);
        assert_eq!(address["geo"]["longitude"], 2.39);
    }
    let in_gazetteer = draft_with("dropoff.address", json!("48 Rue de Rivoli, 75004 Paris"));
    client.create_delivery(in_gazetteer).await;

    assert_eq!(nominatim.requests().len(), 1);
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_geocoded_address_in_another_town_than_the_requested_one_is_a_violation() {
    let (_server, spec) = nominatim(Some(RESPONSE)).await;
    let platform = Platform::start_with(Database::sqlite(), |settings| {
        settings.geocoding.geocoders = vec![spec.parse().unwrap()];
    })
    .await;
    let client = platform.client().await;

    for (address, reason) in [
        (
            "7 Rue Nouvelle, 75020 Lyon",
            "the postcode 75020 and the town Lyon contradict each other",
        ),
        (
            "7 Rue Nouvelle, 69001 Paris",
            "the postcode 69001 and the town Paris contradict each other",
        ),
        ("7 Rue Nouvelle, 69001 Lyon", "not in 69001 Lyon"),
        ("7 Rue Nouvelle, Lyon", "not in Lyon"),
    ] {
        let draft = draft_with("dropoff.address", json!(address));
        let response = client.post("/api/deliveries", draft).await;
        assert_violations(&response, &["dropoff.address"]);
        assert_eq!(
            response.json["violations"][0]["message"],
            format!("found 7 Rue Nouvelle, 75020 Paris, but {reason}")
        );
    }
    let draft = draft_with("dropoff.address", json!(ADDRESS));
    client.create_delivery(draft).await;
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_geocoding_result_is_cached_by_each_core() {
    let (nominatim, spec) = nominatim(Some(RESPONSE)).await;
    let Some(platforms) = Platform::start_two_with(with_geocoder(&spec)).await else {
        return;
    };

    for platform in platforms.iter().flat_map(|platform| [platform; 2]) {
        let client = platform.client().await;
        let draft = draft_with("dropoff.address", json!(ADDRESS));
        let created = client.create_delivery(draft).await;
        assert_eq!(created["dropoff"]["address"]["geo"]["longitude"], 2.39);
    }

    assert_eq!(nominatim.requests().len(), 2);
    Platform::stop_both(platforms).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_address_while_a_geocoder_is_down_is_a_retryable_error() {
    let (_server, spec) = nominatim(None).await;
    let platform = Platform::start_with(Database::sqlite(), with_geocoder(&spec)).await;
    let client = platform.client().await;

    let unknown = draft_with("dropoff.address", json!("7 Rue Nouvelle, Atlantis"));
    let response = client.post("/api/deliveries", unknown).await;

    assert_eq!(response.status, 503, "{}", response.json);
    assert_eq!(response.json["retryable"], true);
    let in_gazetteer = draft_with("dropoff.address", json!("48 Rue de Rivoli, 75004 Paris"));
    client.create_delivery(in_gazetteer).await;
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_geocoder_request_has_the_service_area_and_the_configured_options() {
    let (nominatim, spec) = nominatim(Some(RESPONSE)).await;
    let options = "rate=100&timeout=20s&country=fr,be&language=nl";
    let geocoder = format!("{spec}/base?key=K#{options}");
    let platform = Platform::start_with(Database::sqlite(), with_geocoder(&geocoder)).await;
    let client = platform.client().await;
    let store = platform.store.strip_prefix("stores/").unwrap();
    let area = "--service-area=48.8,2.4,20km";
    platform
        .run_delivery_json(&["stores", "set", store, area])
        .await;

    let draft = draft_with("dropoff.address", json!(ADDRESS));
    client.create_delivery(draft).await;

    assert_eq!(
        nominatim.requests(),
        [
            "/base/search?key=K&q=7+Rue+Nouvelle%2C+75020+Paris&format=jsonv2&addressdetails=1\
          &limit=5&accept-language=nl&countrycodes=fr%2Cbe\
          &viewbox=2.1000%2C48.5000%2C2.7000%2C49.1000"
        ]
    );
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_required_address_precision_is_configurable() {
    use geocoding::Precision;

    // In the gazetteer, interpolated between neighbours, and without a house number.
    let addresses = [
        "48 Rue de Rivoli, 75004 Paris",
        "50 Rue de Rivoli, 75004 Paris",
        "Rue de Rivoli, Paris",
    ];
    for (precision, accepted) in [
        (Precision::House, 1),
        (Precision::Interpolated, 2),
        (Precision::Street, 3),
    ] {
        let platform = Platform::start_with(Database::sqlite(), |settings| {
            settings.geocoding.address_precision = precision;
        })
        .await;
        let client = platform.client().await;

        for (index, address) in addresses.iter().enumerate() {
            let draft = draft_with("dropoff.address", json!(address));
            let response = client.post("/api/deliveries/assert", draft).await;
            let expected = if index < accepted { 200 } else { 400 };
            assert_eq!(
                response.status, expected,
                "{precision} {address}: {}",
                response.json
            );
        }
        platform.stop().await;
    }
}
