//! The examples of the OpenAPI description: each request is sent and its response compared.
//!
//! `UPDATE_EXAMPLES=1 cargo test --test e2e examples` rewrites the responses.

use std::{collections::BTreeMap, fs, path::Path};

use hyper::Method;
use proto::iri;
use serde_json::{Map, Value, json};

use crate::{
    harness::{
        Database, Documentation, Platform,
        image::{FORM, form, jpeg},
        short_draft,
    },
    tracking::brand::set_logo,
};

/// The task in the examples of requests.
const SAMPLE_TASK: &str = "/api/tasks/01932e5c-9f4a-7000-8000-000000000001";

/// That of the examples.
const TRACKING_URL: &str = "https://delivery.example/t/dHJhY2tpbmdfdHJhY2tpbmdfdHJhY2tpbmdfdHJhY2s";

const FILE: &str = "rest-gateway/src/api_description/openapi/examples.json";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_is_a_real_request_and_response() {
    let platform = Platform::start(Database::sqlite()).await;
    let shop = platform.client().await;
    let board = platform.dispatch_board().await;
    let operator = platform.operator().await;
    let desk = operator.create_client("", &["dispatch"]).await;
    let desk = platform.client_for(&desk, &["dispatch"]).await;
    operator.create_courier("Ada Martin").await;
    platform.run_delivery(&set_logo(&platform)).await;
    let documentation = Documentation::of(&platform.base_url).await;
    let mut ids = KnownIds::default();
    let mut responses = Map::new();

    let mut pending = in_order(documentation);
    while !pending.is_empty() {
        let mut blocked = Vec::new();
        for (method, path, operation) in &pending {
            if (method, *path) == (&Method::DELETE, "/api/deliveries/{id}") {
                // Cancelling needs a delivery without done tasks.
                ids.learn(&shop.create_delivery(short_draft()).await);
            }
            if method == Method::PUT && path.starts_with("/api/tasks/") {
                // Each command needs a task in another state.
                let delivery = shop.create_delivery(short_draft()).await;
                ids.learn(&delivery);
                if path.ends_with("/reopen") {
                    let task = ids.fill("/api/tasks/{id}").unwrap();
                    platform.courier().await.complete(&task).await;
                }
            }
            let Some(filled) = ids.fill(path) else {
                blocked.push((method.clone(), *path, *operation));
                continue;
            };
            let task = filled.strip_suffix("/incidents");
            if let Some(task) = task.filter(|task| task.starts_with("/api/tasks/")) {
                let reported = operator.report_incident(iri::name(task), "The parcel is wet");
                reported.await;
            }
            let client = match operation["security"][0]["accessToken"][0].as_str() {
                Some("tasks:all") => &board,
                Some("dispatch") => &desk,
                _ => &shop,
            };

            let task = ids.fill("/api/tasks/{id}").unwrap_or_default();
            let request = client.request(method.clone(), &filled);
            let request = request.header("accept", "application/ld+json, */*;q=0.1");
            let response = match form_of(operation) {
                Some(form) => client.request_token(&platform.demo_client, &form).await,
                None if path.ends_with("_images") => {
                    let parent = if *path == "/api/task_images" {
                        task
                    } else {
                        // That which is listed.
                        let task = iri::name(&task);
                        iri::of(&operator.report_incident(task, "The parcel is wet").await)
                    };
                    let mut request = request.header("x-attach-to", parent);
                    let headers = request.headers_mut().unwrap();
                    headers.insert("content-type", FORM.parse().unwrap());
                    client.send(request, form(&jpeg("parcel", ""))).await
                }
                None => client.send(request, body_of(operation, &task)).await,
            };

            let (status, success) = operation["responses"]
                .as_object()
                .unwrap()
                .iter()
                .find(|(status, _)| status.starts_with('2'))
                .unwrap();
            let body = String::from_utf8_lossy(&response.body);
            assert_eq!(
                &response.status.to_string(),
                status,
                "{method} {filled}: {body}"
            );
            if has_example(path, success) {
                ids.learn(&response.json);
                let id = operation["operationId"].as_str().unwrap();
                responses.insert(id.to_owned(), response.json);
            }
        }
        assert!(
            blocked.len() < pending.len(),
            "no response has the ids for {blocked:#?}"
        );
        pending = blocked;
    }
    let base_url = platform.base_url.clone();
    platform.stop().await;

    check_or_write(FILE, &with_sample_values(responses, &base_url));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_matches_its_schema() {
    let platform = Platform::start(Database::sqlite()).await;
    let documentation = Documentation::of(&platform.base_url).await;
    let mut checked = 0;
    for (method, path, operation) in documentation.operations() {
        let responses = operation["responses"].as_object().unwrap().values();
        for body in responses.chain(operation.get("requestBody")) {
            let content = documentation.resolve(body)["content"].as_object();
            for (media_type, content) in content.into_iter().flatten() {
                let named = content["examples"].as_object().into_iter().flatten();
                let examples = named.map(|(_, example)| &example["value"]);
                for example in examples.chain(content.get("example")) {
                    let errors = documentation.errors(&content["schema"], example);

                    let case = format!("{method} {path} {media_type}");
                    assert!(errors.is_empty(), "{case}: {errors:#?} in {example:#}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 500, "{checked}");
    platform.stop().await;
}

/// The operations ordered by method: creating first, deleting last.
fn in_order(documentation: &Documentation) -> Vec<(Method, &str, &Value)> {
    // Events and notifications appear asynchronously and differ between runs.
    let asynchronous = ["Events", "Notifications"].map(|tag| json!([tag]));
    let mut operations: Vec<_> = documentation
        .operations()
        .filter(|(_, _, operation)| !asynchronous.contains(&operation["tags"]))
        .collect();
    operations.sort_by_key(|(method, path, _)| {
        let position = match *method {
            Method::POST => 0,
            Method::GET => 1,
            Method::DELETE => 3,
            _ => 2,
        };
        (position, *path)
    });
    operations
}

/// The form of the example of a request.
fn form_of(operation: &Value) -> Option<Vec<(&str, &str)>> {
    let content = &operation["requestBody"]["content"];
    let form = content["application/x-www-form-urlencoded"]["example"].as_object()?;
    let fields = form
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()));
    Some(fields.collect())
}

/// The body of the example of a request, with a task that exists.
fn body_of(operation: &Value, task: &str) -> String {
    match &operation["requestBody"]["content"]["application/ld+json"]["example"] {
        Value::Null => String::new(),
        example => example.to_string().replace(SAMPLE_TASK, task),
    }
}

/// Whether the response has an example: JSON, except the documents about the API.
fn has_example(path: &str, success: &Value) -> bool {
    let content = success["content"].as_object();
    let is_json = content.is_some_and(|content| content.keys().all(|name| name.ends_with("json")));
    is_json && !path.starts_with("/api/docs") && !path.starts_with("/api/contexts")
}

/// The id of the last resource of each collection that a response has named.
#[derive(Default)]
struct KnownIds(BTreeMap<String, String>);

impl KnownIds {
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
                if let ["http:", "", _, "t", token] = parts[..] {
                    self.0.insert("t".to_owned(), token.to_owned());
                }
            }
            Value::Array(elements) => elements.iter().for_each(|element| self.learn(element)),
            Value::Object(members) => members.values().for_each(|member| self.learn(member)),
            _ => {}
        }
    }

    /// The path with its `{…}` replaced by a known id.
    fn fill(&self, path: &str) -> Option<String> {
        let Some((before, rest)) = path.split_once('{') else {
            return Some(path.to_owned());
        };
        let (_, after) = rest.split_once('}').unwrap();
        let member = match before {
            "/api/contexts/" => "Delivery",
            "/api/docs/" | "/t/files/" => "page.css",
            "/errors/" => "not_found",
            "/t/" => self.0.get("t")?,
            before => self.0.get(before.split('/').nth(2)?)?,
        };
        Some(format!("{before}{member}{after}"))
    }
}

/// Replaces values that differ between runs by samples.
fn with_sample_values(responses: Map<String, Value>, base_url: &str) -> Value {
    let mut ids = BTreeMap::new();
    let responses = Value::Object(responses).to_string();
    let responses = responses.replace(base_url, "https://delivery.example");
    let mut responses = serde_json::from_str(&responses).unwrap();
    replace(&mut responses, "", &mut ids);
    responses
}

fn replace(value: &mut Value, name: &str, ids: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => {
            let sample = match name {
                "access_token" => "<ACCESS_TOKEN>",
                "secret" => "c2VjcmV0IHRoYXQgeW91IGtlZXAgdG8geW91cnNlbGY=",
                "kid" => "<KEY_ID>",
                "x" => "<PUBLIC_KEY>",
                "trackingUrl" => TRACKING_URL,
                _ if text.starts_with("/api/retail_prices/") => {
                    "/api/retail_prices/cXVvdGU_cXVvdGU_cXVvdGU_cXVvdGU_cXVvdGU_cXVvdGU_cXVvdGU_cXVvdGU_"
                }
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

/// Compares recorded responses with those of a file, or rewrites it.
pub(crate) fn check_or_write(file: &str, responses: &Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        let text = serde_json::to_string_pretty(responses).unwrap();
        fs::write(file, text + "\n").unwrap();
        return;
    }
    let expected: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(
        &expected, responses,
        "if the change is intended: UPDATE_EXAMPLES=1 cargo test --test e2e examples"
    );
}
