//! `--geocoder`: other people's geocoders, asked in the operator's order; `--address-precision`.

use std::sync::{Arc, Mutex};

use delivery::Settings;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::order_with;
use crate::harness::{Database, Platform, Twin};

const TEXT: &str = "7 Rue Nouvelle, 75020 Paris";
const KNOWN: &str = r#"[{"lat":"48.8700","lon":"2.3900","category":"place","addresstype":"place","display_name":"x","address":{"house_number":"7","road":"Rue Nouvelle","city":"Paris","postcode":"75020","country_code":"fr"}}]"#;

/// A Nominatim that knows one address, or is down.
struct Nominatim {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Nominatim {
    async fn start(answer: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("nominatim=http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let length = connection.read(&mut head).await.unwrap_or_default();
                head.truncate(length);
                let head = String::from_utf8_lossy(&head).into_owned();
                let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
                seen.lock().unwrap().push(target);
                let body = answer.unwrap_or("");
                let status = if answer.is_some() { 200 } else { 503 };
                let length = body.len();
                let text = format!(
                    "HTTP/1.1 {status} -\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                );
                let _ = connection.write_all(text.as_bytes()).await;
            }
        });
        Self { url, asked }
    }

    /// What it was asked for so far: path and query.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The gazetteer first.
fn asking(geocoder: &str) -> impl Fn(&mut Settings) {
    let geocoders: Vec<_> = ["gazetteer", geocoder]
        .map(|geocoder| geocoder.parse().unwrap())
        .into();
    move |settings| settings.geocoding.geocoders.clone_from(&geocoders)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gazetteer_does_not_know_the_next_geocoder_is_asked_for_once() {
    let nominatim = Nominatim::start(Some(KNOWN)).await;
    let platform = Platform::start_with(Database::sqlite(), asking(&nominatim.url)).await;
    let client = platform.client().await;

    for text in [TEXT, "7 RUE NOUVELLE 75020 PARIS"] {
        let order = order_with("dropoff.address", json!(text));
        let created = client.create_delivery(order).await;
        let address = &created["dropoff"]["address"];
        assert_eq!(address["streetAddress"], "7 Rue Nouvelle, 75020 Paris");
        assert_eq!(address["geo"]["latitude"], 48.87);
        assert_eq!(address["geo"]["longitude"], 2.39);
    }
    let known = order_with("dropoff.address", json!("48 Rue de Rivoli, 75004 Paris"));
    client.create_delivery(known).await;

    assert_eq!(nominatim.asked().len(), 1);
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_core_was_answered_the_other_does_not_ask() {
    let nominatim = Nominatim::start(Some(KNOWN)).await;
    let Some(twins) = Twin::start_two_with(asking(&nominatim.url)).await else {
        return;
    };

    for twin in &twins {
        let client = twin.client().await;
        let order = order_with("dropoff.address", json!(TEXT));
        let created = client.create_delivery(order).await;
        assert_eq!(created["dropoff"]["address"]["geo"]["longitude"], 2.39);
    }

    assert_eq!(nominatim.asked().len(), 1);
    for twin in twins {
        twin.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_only_a_geocoder_that_is_down_may_know_is_for_later() {
    let nominatim = Nominatim::start(None).await;
    let platform = Platform::start_with(Database::sqlite(), asking(&nominatim.url)).await;
    let client = platform.client().await;

    let unknown = order_with("dropoff.address", json!("7 Rue Nouvelle, Atlantis"));
    let answer = client.post("/api/deliveries", unknown).await;

    assert_eq!(answer.status, 503, "{}", answer.json);
    assert_eq!(answer.json["retryable"], true);
    let known = order_with("dropoff.address", json!("48 Rue de Rivoli, 75004 Paris"));
    client.create_delivery(known).await;
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_geocoder_is_told_where_the_store_delivers_and_what_else_the_operator_says() {
    let nominatim = Nominatim::start(Some(KNOWN)).await;
    let options = "rate=100&timeout=20s&country=fr,be&language=nl";
    let geocoder = format!("{}/base?key=K#{options}", nominatim.url);
    let platform = Platform::start_with(Database::sqlite(), asking(&geocoder)).await;
    let client = platform.client().await;
    let store = platform.store.strip_prefix("stores/").unwrap();
    let area = "--service-area=48.8,2.4,20km";
    platform
        .delivery_json(&["stores", "set", store, area])
        .await;

    let order = order_with("dropoff.address", json!(TEXT));
    client.create_delivery(order).await;

    assert_eq!(
        nominatim.asked(),
        [
            "/base/search?key=K&q=7+Rue+Nouvelle%2C+75020+Paris&format=jsonv2&addressdetails=1\
          &limit=5&accept-language=nl&countrycodes=fr%2Cbe\
          &viewbox=2.1000%2C48.5000%2C2.7000%2C49.1000"
        ]
    );
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_exact_an_address_must_be_is_the_operators_choice() {
    use geocoding::Precision;

    // In the gazetteer, between its neighbours, and no house at all.
    let texts = [
        "48 Rue de Rivoli, 75004 Paris",
        "50 Rue de Rivoli, 75004 Paris",
        "Rue de Rivoli, Paris",
    ];
    for (demand, accepted) in [
        (Precision::House, 1),
        (Precision::Interpolated, 2),
        (Precision::Street, 3),
    ] {
        let platform = Platform::start_with(Database::sqlite(), |settings| {
            settings.geocoding.address_precision = demand;
        })
        .await;
        let client = platform.client().await;

        for (place, text) in texts.iter().enumerate() {
            let order = order_with("dropoff.address", json!(text));
            let answer = client.post("/api/deliveries/assert", order).await;
            let expected = if place < accepted { 200 } else { 400 };
            assert_eq!(answer.status, expected, "{demand} {text}: {}", answer.json);
        }
        platform.stop().await;
    }
}
