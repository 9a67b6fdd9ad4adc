//! Drafts of deliveries, asserted and priced.

use serde_json::{Value, json};

use crate::harness::{Database, Documentation, Mismatches, Platform};

/// A path in a delivery, and values of the member there.
type Member = (&'static str, Vec<Value>);

fn text(length: usize) -> Value {
    json!("é".repeat(length))
}

/// The values around the limits of an optional text.
fn texts(limit: usize) -> Vec<Value> {
    vec![
        json!(null),
        json!(""),
        json!(" "),
        json!("a\n\tb"),
        json!("a\0b"),
        json!("a\u{9f}b"),
        text(limit),
        text(limit + 1),
    ]
}

fn times(time: &str) -> Vec<Value> {
    vec![json!(null), json!(""), json!(" "), json!(time)]
}

fn list(element: &Value, count: usize) -> Value {
    json!(vec![element; count])
}

fn addresses() -> Vec<Member> {
    let point = json!({ "latitude": 48.8566, "longitude": 2.3522 });
    vec![
        (
            "pickup.address",
            vec![json!(null), json!(""), json!({}), json!({ "name": "x" })],
        ),
        (
            "dropoff.address",
            vec![
                json!(null),
                json!(""),
                json!(" "),
                json!("48 Rue de Rivoli, 75004 Paris"),
                json!({}),
                json!({ "streetAddress": null }),
                json!({ "streetAddress": " " }),
                json!({ "name": "x" }),
                json!({ "latLng": null, "geo": null }),
                json!({ "geo": point }),
                json!({ "latLng": [48.8566, 2.3522] }),
            ],
        ),
        (
            "dropoff.address.latLng",
            vec![
                json!([]),
                json!([48.8566]),
                json!([48.8566, "2.3522"]),
                json!([48.8566, 2.3522, 0]),
                json!([90.1, 2.3522]),
                json!([48.8566, -180.1]),
            ],
        ),
        ("dropoff.address.streetAddress", texts(500)),
        ("dropoff.address.name", texts(200)),
        ("dropoff.address.contactName", texts(200)),
        ("dropoff.address.description", texts(5000)),
        ("dropoff.address.postalCode", texts(200)),
        ("dropoff.address.addressLocality", texts(200)),
        (
            "dropoff.address.addressCountry",
            ["", " ", "FR", "fr", "F", "FRA", "33"]
                .map(|code| json!(code))
                .to_vec(),
        ),
        (
            "dropoff.address.telephone",
            vec![
                json!(null),
                json!(""),
                json!(false),
                json!(true),
                json!("+33612345678"),
            ],
        ),
    ]
}

fn tasks() -> Vec<Member> {
    vec![
        ("pickup", vec![json!(null), json!({}), json!(""), json!(5)]),
        ("pickup.before", times("tomorrow 11:00")),
        ("dropoff", vec![json!(null), json!({}), json!("")]),
        ("dropoff.before", times("tomorrow 13:00")),
        ("dropoff.timeSlot", times("2030-04-02 10:00-11:00")),
        ("dropoff.after", times("tomorrow 12:00")),
        ("dropoff.comments", texts(5000)),
        (
            "dropoff.weight",
            vec![
                json!(null),
                json!(-1),
                json!(0),
                json!(1.0),
                json!(1.5),
                json!("1"),
                json!(100_000_000),
                json!(100_000_001),
            ],
        ),
        (
            "dropoff.tags",
            vec![
                json!(null),
                json!(""),
                json!("a b"),
                json!([""]),
                json!(["a\u{7}"]),
                json!(vec!["a"; 50].join(" ")),
                json!(vec!["a"; 51].join(" ")),
                json!("a".repeat(65)),
                json!([null]),
                json!([text(64)]),
                json!([text(65)]),
                list(&json!("a"), 50),
                list(&json!("a"), 51),
            ],
        ),
    ]
}

fn packages() -> Vec<Member> {
    let package = |kind: Value, quantity: Value| json!({ "type": kind, "quantity": quantity });
    let values = vec![
        json!({}),
        json!(null),
        package(json!(""), json!(1)),
        package(json!(" "), json!(1)),
        package(json!(null), json!(1)),
        package(json!("XL"), json!(null)),
        package(json!("XL"), json!(0)),
        package(json!("XL"), json!(1)),
        package(json!("XL"), json!(1.0)),
        package(json!("XL"), json!(1.5)),
        package(json!("XL"), json!("1")),
        package(json!("XL"), json!(10_000)),
        package(json!("XL"), json!(10_001)),
        package(text(201), json!(1)),
        package(json!("\u{1b}[XL"), json!(1)),
    ];
    let one = package(json!("XL"), json!(1));
    let lists = vec![json!(null), json!([]), list(&one, 100), list(&one, 101)];
    let single = values.iter().map(|value| json!([value]));
    vec![("dropoff.packages", single.chain(lists).collect())]
}

fn metadata_and_references() -> Vec<Member> {
    let object = |count| {
        let members = (0..count).map(|number: usize| (number.to_string(), json!("x")));
        json!(members.collect::<serde_json::Map<_, _>>())
    };
    vec![
        (
            "dropoff.metadata",
            vec![
                json!(null),
                json!({ "": "" }),
                json!({ "a": null }),
                json!({ "a": 1 }),
                json!({ "a": text(500) }),
                json!({ "a": text(501) }),
                json!({ "a": "\u{1b}" }),
                json!({ "a\n": "" }),
                json!({ "a".repeat(64): "" }),
                json!({ "a".repeat(65): "" }),
                object(50),
                object(51),
            ],
        ),
        ("externalReference", texts(200)),
        (
            "retailPrice",
            vec![
                json!(null),
                json!(""),
                json!("/api/retail_prices/calculate"),
            ],
        ),
    ]
}

pub(super) fn draft_with(path: &str, value: &Value) -> Value {
    let address = || json!({ "streetAddress": "24 Rue de la Paix", "latLng": [48.8566, 2.3522] });
    let mut draft = json!({
        "pickup": { "address": address(), "before": "tomorrow 11:00" },
        "dropoff": { "address": address(), "before": "tomorrow 13:00" },
    });
    let mut place = &mut draft;
    for name in path.split('.') {
        place = &mut place[name];
    }
    *place = value.clone();
    draft
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_permits_a_delivery_if_and_only_if_it_is_accepted() {
    let platform = Platform::start(Database::sqlite()).await;
    let client = platform.client().await;
    let documentation = Documentation::of(&platform.base_url).await;
    let schema = json!({ "$ref": "#/components/schemas/DeliveryDraft" });
    let mut mismatches = Mismatches::default();

    for (path, values) in [addresses(), tasks(), packages(), metadata_and_references()].concat() {
        for value in values {
            let draft = draft_with(path, &value);
            let errors = documentation.errors(&schema, &draft);
            for action in ["/api/deliveries/assert", "/api/retail_prices/calculate"] {
                let response = client.post(action, draft.clone()).await;
                let violations = response.violation_paths();
                let case = format!("{action} {path} {value:.80}: {errors:.200?} {violations:?}");
                mismatches.check_eq(case, response.status == 200, errors.is_empty());
            }
        }
    }

    mismatches.assert_none();
    platform.stop().await;
}
