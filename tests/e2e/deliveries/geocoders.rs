//! `--geocoder`: other people's geocoders, asked in the operator's order.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use delivery::Settings;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::order_with;
use crate::harness::{Database, Platform};

const TEXT: &str = "7 Rue Nouvelle, 75020 Paris";
const KNOWN: &str = r#"[{"lat":"48.8700","lon":"2.3900","category":"place","addresstype":"place","display_name":"x","address":{"house_number":"7","road":"Rue Nouvelle","city":"Paris","postcode":"75020","country_code":"fr"}}]"#;

/// A Nominatim that knows one address, or is down. Gives its URL and how often it was asked.
async fn nominatim(answer: Option<&'static str>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nominatim=http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut head = [0; 4096];
            let _ = connection.read(&mut head).await;
            let body = answer.unwrap_or("");
            let status = if answer.is_some() { 200 } else { 503 };
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} -\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = connection.write_all(text.as_bytes()).await;
        }
    });
    (url, asked)
}

async fn platform(geocoder: &str) -> Platform {
    Platform::start_with(Database::sqlite(), |settings: &mut Settings| {
        settings.geocoders = ["gazetteer", geocoder]
            .map(|geocoder| geocoder.parse().unwrap())
            .into();
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gazetteer_does_not_know_the_next_geocoder_is_asked_for_once() {
    let (geocoder, asked) = nominatim(Some(KNOWN)).await;
    let platform = platform(&geocoder).await;
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

    assert_eq!(asked.load(Ordering::Relaxed), 1);
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_only_a_geocoder_that_is_down_may_know_is_for_later() {
    let (geocoder, _) = nominatim(None).await;
    let platform = platform(&geocoder).await;
    let client = platform.client().await;

    let unknown = order_with("dropoff.address", json!("7 Rue Nouvelle, Atlantis"));
    let answer = client.post("/api/deliveries", unknown).await;

    assert_eq!(answer.status, 503, "{}", answer.json);
    assert_eq!(answer.json["retryable"], true);
    let known = order_with("dropoff.address", json!("48 Rue de Rivoli, 75004 Paris"));
    client.create_delivery(known).await;
    platform.stop().await;
}
