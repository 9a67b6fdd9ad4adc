//! The documentation's examples: each request is sent, and each answer is what came back.
//!
//! `UPDATE_EXAMPLES=1 cargo test --test e2e examples` writes the answers anew.

use std::{collections::BTreeMap, fs, path::Path};

use hyper::Method;
use serde_json::{Map, Value, json};

use crate::harness::{Answer, ApiClient, Database, Documentation, Platform};

const FILE: &str = "rest-gateway/src/vocabulary/openapi/examples.json";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_what_the_platform_takes_and_answers() {
    let platform = Platform::start(Database::sqlite()).await;
    let shop = platform.client().await;
    let operator = &platform.operator_client;
    let courier = platform.client_of(operator, &["tasks:all"]).await;
    let documentation = Documentation::of(&platform.base_url).await;
    let mut known = Known::default();
    let mut answers = Map::new();

    let mut to_do = in_order(documentation);
    while !to_do.is_empty() {
        let mut waiting = Vec::new();
        for (method, path, operation) in &to_do {
            if (method, *path) == (&Method::DELETE, "/api/deliveries/{id}") {
                // One that no courier has been to.
                let order = json!({ "dropoff": { "address": "48 Rue de Rivoli, Paris", "before": "tomorrow 13:00" } });
                known.learn(&shop.create_delivery(order).await);
            }
            let Some(filled) = known.fill(path) else {
                waiting.push((method.clone(), *path, *operation));
                continue;
            };
            let needs = operation["security"].to_string();
            let client = if needs.contains("tasks:all") {
                &courier
            } else {
                &shop
            };

            let answer = send(&platform, client, (method, &filled), operation).await;

            let (status, success) = operation["responses"]
                .as_object()
                .unwrap()
                .iter()
                .find(|(status, _)| status.starts_with('2'))
                .unwrap();
            let body = String::from_utf8_lossy(&answer.body);
            assert_eq!(
                &answer.status.to_string(),
                status,
                "{method} {filled}: {body}"
            );
            if is_wanted(path, success) {
                known.learn(&answer.json);
                let id = operation["operationId"].as_str().unwrap();
                answers.insert(id.to_owned(), answer.json);
            }
        }
        assert!(waiting.len() < to_do.len(), "nothing leads to {waiting:#?}");
        to_do = waiting;
    }
    platform.stop().await;

    check_or_write(&alike_every_time(answers));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_as_its_schema_says() {
    let platform = Platform::start(Database::sqlite()).await;
    let documentation = Documentation::of(&platform.base_url).await;
    let mut checked = 0;
    for (method, path, operation) in documentation.operations() {
        let answers = operation["responses"].as_object().unwrap().values();
        for body in answers.chain(operation.get("requestBody")) {
            let content = documentation.resolve(body)["content"].as_object();
            for (media_type, content) in content.into_iter().flatten() {
                let several = content["examples"].as_object().into_iter().flatten();
                let examples = several.map(|(_, example)| &example["value"]);
                for example in examples.chain(content.get("example")) {
                    let errors = documentation.errors(&content["schema"], example);

                    let place = format!("{method} {path} {media_type}");
                    assert!(errors.is_empty(), "{place}: {errors:#?} in {example:#}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 500, "{checked}");
    platform.stop().await;
}

/// What makes something comes first, and what ends something last.
fn in_order(documentation: &Documentation) -> Vec<(Method, &str, &Value)> {
    // What happens by itself, and when it likes, is not the same every time.
    let by_itself = ["Events", "Notifications"].map(|subject| json!([subject]));
    let mut operations: Vec<_> = documentation
        .operations()
        .filter(|(_, _, operation)| !by_itself.contains(&operation["tags"]))
        .collect();
    operations.sort_by_key(|(method, path, _)| {
        let turn = match *method {
            Method::POST => 0,
            Method::GET => 1,
            Method::DELETE => 3,
            _ => 2,
        };
        (turn, *path)
    });
    operations
}

async fn send(
    platform: &Platform,
    client: &ApiClient,
    (method, path): (&Method, &str),
    operation: &Value,
) -> Answer {
    let content = &operation["requestBody"]["content"];
    let form = &content["application/x-www-form-urlencoded"]["example"];
    if let Some(form) = form.as_object() {
        let form: Vec<_> = form
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        return client.ask_for_token(&platform.demo_client, &form).await;
    }
    let body = match &content["application/ld+json"]["example"] {
        Value::Null => String::new(),
        example => example.to_string(),
    };
    let request = client
        .request(method.clone(), path)
        .header("accept", "application/ld+json, */*;q=0.1");
    client.send(request, body).await
}

/// Whether the body of this answer is shown: the documents about the API are not.
fn is_wanted(path: &str, success: &Value) -> bool {
    let content = success["content"].as_object();
    let is_json = content.is_some_and(|content| content.keys().all(|name| name.ends_with("json")));
    is_json && !path.starts_with("/api/docs") && !path.starts_with("/api/contexts")
}

/// The last resource of each collection that an answer has named.
#[derive(Default)]
struct Known(BTreeMap<String, String>);

impl Known {
    fn learn(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                let parts: Vec<_> = text.split('/').collect();
                if let ["", "api", collection, member] = parts[..]
                    && !member.contains('?')
                    && member != "choices"
                {
                    self.0.insert(collection.to_owned(), member.to_owned());
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.learn(element)),
            Value::Object(members) => members.values().for_each(|member| self.learn(member)),
            _ => {}
        }
    }

    /// A path with what is known in the place of its `{…}`.
    fn fill(&self, path: &str) -> Option<String> {
        let Some((before, rest)) = path.split_once('{') else {
            return Some(path.to_owned());
        };
        let (_, after) = rest.split_once('}').unwrap();
        let member = match before {
            "/api/contexts/" => "Delivery",
            "/api/docs/" => "page.css",
            "/errors/" => "not_found",
            before => self.0.get(before.split('/').nth(2)?)?,
        };
        Some(format!("{before}{member}{after}"))
    }
}

/// What differs from run to run, written as it looks.
fn alike_every_time(answers: Map<String, Value>) -> Value {
    let mut ids = BTreeMap::new();
    let mut answers = Value::Object(answers);
    replace(&mut answers, "", &mut ids);
    answers
}

fn replace(value: &mut Value, name: &str, ids: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            let sample = match name {
                "access_token" => "<ACCESS_TOKEN>",
                "secret" => "c2VjcmV0IHRoYXQgeW91IGtlZXAgdG8geW91cnNlbGY=",
                "kid" => "<KEY_ID>",
                "x" => "<PUBLIC_KEY>",
                _ if text.starts_with("/api/retail_prices/") => "/api/retail_prices/<TOKEN>",
                _ => &with_sample_ids(text, ids),
            };
            sample.clone_into(text);
        }
        Value::Array(elements) => elements
            .iter_mut()
            .for_each(|element| replace(element, name, ids)),
        Value::Object(members) => members
            .iter_mut()
            .for_each(|(name, member)| replace(member, name, ids)),
        _ => {}
    }
}

fn with_sample_ids(text: &str, ids: &mut BTreeMap<String, String>) -> String {
    let replaced = text.split('/').map(|part| {
        if uuid::Uuid::try_parse(part).is_err() {
            return part.to_owned();
        }
        let number = ids.len() + 1;
        ids.entry(part.to_owned())
            .or_insert_with(|| format!("01932e5c-9f4a-7000-8000-{number:012x}"))
            .clone()
    });
    replaced.collect::<Vec<_>>().join("/")
}

fn check_or_write(answers: &Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        let text = serde_json::to_string_pretty(answers).unwrap();
        fs::write(file, text + "\n").unwrap();
        return;
    }
    let written: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(
        &written, answers,
        "if this is how it should be: UPDATE_EXAMPLES=1 cargo test --test e2e examples"
    );
}
