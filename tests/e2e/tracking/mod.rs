//! The tracking pages of deliveries: what each state shows, which links open one, for how long, and the shop's look.

pub(crate) mod brand;
mod browser;
mod ending;
mod estimate;
mod limits;
mod states;

use hyper::Method;
use serde_json::{Value, json};

use crate::harness::{Platform, Response};

/// What browsers accept.
const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

/// In every text that the page must not show.
const MARK: &str = "Xyzzy";

/// A draft with a mark in every field that is not for the page.
fn draft() -> Value {
    let task = |street: &str| {
        json!({
            "address": {
                "streetAddress": format!("{street}, floor {MARK}, 75004 Paris"),
                "latLng": [48.8566, 2.3522],
                "name": format!("Chez {MARK}"),
                "contactName": format!("Zoé {MARK}"),
                "telephone": "+33699999999",
                "description": format!("Code {MARK}"),
                "addressLocality": "Paris",
            },
            "comments": format!("Ring at {MARK}'s"),
            "tags": [MARK],
            "metadata": { "customer": MARK },
        })
    };
    let mut dropoff = task("48 Rue de Rivoli");
    dropoff["before"] = json!("2020-04-03 13:00");
    json!({ "pickup": task("24 Rue de la Paix"), "dropoff": dropoff, "externalReference": MARK })
}

/// The path of a delivery's page.
#[track_caller]
fn path(platform: &Platform, delivery: &Value) -> String {
    let url = delivery["trackingUrl"].as_str().unwrap();
    url.strip_prefix(&platform.base_url).unwrap().to_owned()
}

/// What a browser gets. Fails if it has anything private.
async fn open(platform: &Platform, path: &str, language: &str) -> Response {
    let client = platform.anonymous_client();
    let request = client.request(Method::GET, path);
    let request = request.header("accept", BROWSER);
    let request = request.header("accept-language", language);
    let response = client.send(request, "").await;
    let body = String::from_utf8(response.body.to_vec()).unwrap();
    for text in [body, format!("{:?}", response.headers)] {
        for private in [
            "xyzzy",
            "+33699999999",
            "zoé",
            "/api/tasks",
            "/api/deliveries",
        ] {
            assert!(!text.to_lowercase().contains(private), "{private}: {text}");
        }
    }
    response
}

/// The status of a page, and its text by lines.
async fn read(platform: &Platform, path: &str) -> (u16, Vec<String>) {
    let page = open(platform, path, "en").await;
    (page.status, text(&page))
}

/// What a page shows, by lines.
fn text(page: &Response) -> Vec<String> {
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    let html = String::from_utf8(page.body.to_vec()).unwrap();
    let (_, body) = html.split_once("<body>").unwrap();
    let mut text = String::new();
    let mut is_tag = false;
    for c in body.chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

async fn status(platform: &Platform, path: &str) -> u16 {
    open(platform, path, "en").await.status
}
