//! JSON-LD tools can process the API: every response under a JSON-LD 1.1 processor, with the
//! contexts that the platform serves.

use std::collections::{BTreeSet, HashMap};

use json_ld::{
    IriBuf, JsonLdProcessor, Options, RemoteDocument, RemoteDocumentReference, iref,
    rdf_types::vocabulary::no_vocabulary,
    syntax::{Context, IntoJsonWithContext, Parse, Print, TryFromJson},
};
use serde_json::{Value, json};

use crate::harness::{ApiClient, Database, Platform, iri};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_response_expands_to_iris_only_and_compacts_to_itself() {
    let platform = Platform::start(Database::sqlite()).await;
    let processor = Processor::of(&platform);

    for (case, document) in every_response(&platform).await {
        let expanded = processor.expand(&document).await;
        let compacted = processor.compact(&document).await;

        for name in names(&expanded) {
            assert!(
                iref::Iri::new(&name).is_ok(),
                "{case}: {name} is not an IRI"
            );
        }
        assert_eq!(
            processor.comparable(&compacted),
            processor.comparable(&document),
            "{case}"
        );
    }
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_class_and_property_of_a_response_is_in_the_documentation() {
    let platform = Platform::start(Database::sqlite()).await;
    let processor = Processor::of(&platform);
    let documentation = platform.anonymous_client().get("/api/docs.jsonld").await;
    let documented = ids(&processor.expand(&documentation.expect(200)).await);

    for (case, document) in every_response(&platform).await {
        if document["@type"] == "hydra:ApiDocumentation" {
            continue;
        }
        for name in names(&processor.expand(&document).await) {
            assert!(documented.contains(&name), "{case}: {name}");
        }
    }
    platform.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_can_navigate_from_any_response_to_a_collections_member_class() {
    let platform = Platform::start(Database::sqlite()).await;
    let processor = Processor::of(&platform);
    let anonymous = platform.anonymous_client();

    let response = anonymous.get("/nowhere").await;
    let link = response.header("link").to_owned();
    let (documentation, relation) = link.split_once(">; rel=").unwrap();
    assert_eq!(
        relation,
        "\"http://www.w3.org/ns/hydra/core#apiDocumentation\""
    );
    let path = documentation
        .strip_prefix(&format!("<{}", platform.base_url))
        .unwrap();
    let documentation = anonymous.get(path).await.expect(200);
    let entrypoint = documentation["hydra:entrypoint"].as_str().unwrap();
    let entrypoint = anonymous.get(entrypoint).await.expect(200);

    let [entrypoint] = &processor.expand(&entrypoint).await[..] else {
        panic!("the entrypoint must be one node");
    };
    let link = format!("{}/api/docs.jsonld#Entrypoint/delivery", platform.base_url);
    assert_eq!(
        entrypoint[&link],
        json!([{ "@id": format!("{}/api/deliveries", platform.base_url) }])
    );
    let expanded = processor.expand(&documentation).await;
    let property = node(&expanded, &link);
    let member = &property["http://www.w3.org/2000/01/rdf-schema#range"][1]["http://www.w3.org/2002/07/owl#equivalentClass"]
        [0];
    assert_eq!(
        member["http://www.w3.org/2002/07/owl#allValuesFrom"],
        json!([{ "@id": "http://schema.org/ParcelDelivery" }])
    );
    platform.stop().await;
}

/// A response of every kind, with all its optional members.
async fn every_response(platform: &Platform) -> Vec<(String, Value)> {
    let client = platform.client().await;
    let anonymous = platform.anonymous_client();
    let delivery = client.create_delivery(draft()).await;
    let webhook = client
        .create_webhook("delivery.picked", "http://127.0.0.1:9/a/../b?c")
        .await;
    let price = client
        .post("/api/retail_prices/calculate", draft())
        .await
        .expect(200);
    let app = client.get("/api/me").await.expect(200);
    let store = client.get(app["store"].as_str().unwrap()).await.expect(200);
    let time_slot = store["timeSlot"].as_str().unwrap().to_owned();
    let courier = platform.courier().await;
    courier.complete(iri(&delivery["pickup"])).await;
    let event = first_member(&client, "/api/events").await;
    let notification = first_member(&client, &format!("{}/notifications", iri(&webhook))).await;
    let mut responses = vec![
        ("a created delivery".to_owned(), delivery.clone()),
        ("a created webhook".to_owned(), webhook.clone()),
        ("a price".to_owned(), price.clone()),
    ];

    for path in [
        "/api",
        "/api/settings",
        "/api/docs.jsonld",
        "/api/me",
        app["store"].as_str().unwrap(),
        &time_slot,
        &format!("{time_slot}/choices"),
        "/api/time_slots/choices",
        "/api/deliveries",
        iri(&delivery),
        iri(&delivery["pickup"]),
        iri(&delivery["dropoff"]),
        iri(&price),
        "/api/webhooks",
        iri(&webhook),
        "/api/events",
        iri(&event),
        &format!("{}/notifications", iri(&webhook)),
        iri(&notification),
    ] {
        responses.push((path.to_owned(), client.get(path).await.expect(200)));
    }
    let asserted = client.post("/api/deliveries/assert", draft()).await;
    responses.push(("an asserted delivery".to_owned(), asserted.expect(200)));
    responses.extend(every_error(&client, &anonymous).await);
    responses
}

/// Waits for a collection to have a member and returns it.
async fn first_member(client: &ApiClient, path: &str) -> Value {
    client
        .wait_until(path, |page| page["hydra:member"].get(0).cloned())
        .await
}

async fn every_error(client: &ApiClient, anonymous: &ApiClient) -> Vec<(String, Value)> {
    let violations = client.post("/api/deliveries", json!({ "pickup": 1 })).await;
    let mut far = draft();
    far["dropoff"]["address"]["latLng"] = json!([45.764, 4.8357]);
    let no_price = client.post("/api/retail_prices/calculate", far).await;
    assert!(no_price.json["calculation"].is_array(), "{}", no_price.json);
    vec![
        ("violations".to_owned(), violations.expect(400)),
        ("no price".to_owned(), no_price.expect(400)),
        (
            "404".to_owned(),
            anonymous.get("/nowhere").await.expect(404),
        ),
        ("401".to_owned(), anonymous.get("/api/me").await.expect(401)),
    ]
}

fn draft() -> Value {
    json!({
        "pickup": { "address": "24 Rue de la Paix, 75002 Paris", "before": "tomorrow 11:00" },
        "dropoff": {
            "address": {
                "streetAddress": "48 Rue de Rivoli, 75004 Paris",
                "name": "Chez Zoé",
                "description": "Third floor",
                "contactName": "Jane Doe",
                "telephone": "+33612345678",
                "postalCode": "75004",
                "addressLocality": "Paris",
                "addressCountry": "FR",
                "latLng": [48.8566, 2.3522],
            },
            "before": "tomorrow 13:00",
            "comments": "Ring twice",
            "weight": 1500,
            "tags": ["cold", "fragile"],
            "metadata": { "@id": "not an IRI", "order": "42" },
        },
    })
}

/// A JSON-LD processor that loads its contexts from a platform.
struct Processor {
    base_url: String,
    anonymous: ApiClient,
}

impl Processor {
    fn of(platform: &Platform) -> Self {
        Self {
            base_url: platform.base_url.clone(),
            anonymous: platform.anonymous_client(),
        }
    }

    async fn expand(&self, document: &Value) -> Vec<Value> {
        let contexts = self.contexts(document).await;
        let expanded = self.remote(document).expand(&contexts).await.unwrap();
        let expanded = expanded.into_objects().into_json_with(no_vocabulary());
        serde_json::from_str(&expanded.compact_print().to_string()).unwrap()
    }

    /// Expands, and compacts with the document's own context.
    async fn compact(&self, document: &Value) -> Value {
        let contexts = self.contexts(document).await;
        let context = match document["@context"].as_str() {
            Some(path) => RemoteDocumentReference::iri(self.iri(path)),
            None => RemoteDocumentReference::Loaded(RemoteDocument::new(
                None,
                None,
                Context::try_from_json(to_json_ld(&document["@context"])).unwrap(),
            )),
        };
        let options = Options {
            // Relative IRIs (`tasks/1` for `/api/tasks/1`) would be valid, but not comparable.
            compact_to_relative: false,
            ..Options::default()
        };
        let compacted = self
            .remote(document)
            .compact_using(context, &contexts, options)
            .await
            .unwrap();
        let mut compacted: Value =
            serde_json::from_str(&compacted.compact_print().to_string()).unwrap();
        compacted["@context"] = document["@context"].clone();
        compacted
    }

    /// The context of a document, loaded from the platform.
    async fn contexts(&self, document: &Value) -> HashMap<IriBuf, RemoteDocument> {
        let Some(path) = document["@context"].as_str() else {
            return HashMap::new();
        };
        let context = self.anonymous.get(path).await.expect(200);
        let iri = self.iri(path);
        let remote = RemoteDocument::new(Some(iri.clone()), None, to_json_ld(&context));
        HashMap::from([(iri, remote)])
    }

    fn remote(&self, document: &Value) -> RemoteDocument {
        let iri = self.iri("/api/anything/below");
        RemoteDocument::new(Some(iri), None, to_json_ld(document))
    }

    fn iri(&self, path: &str) -> IriBuf {
        IriBuf::new(format!("{}{path}", self.base_url)).unwrap()
    }

    /// The document without nulls and with all IRIs as paths.
    fn comparable(&self, value: &Value) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), self.comparable(value)))
                .collect(),
            Value::Array(values) => values.iter().map(|value| self.comparable(value)).collect(),
            Value::String(text) => json!(text.strip_prefix(&self.base_url).unwrap_or(text)),
            other => other.clone(),
        }
    }
}

fn to_json_ld(value: &Value) -> json_ld::syntax::Value {
    let (value, _) = json_ld::syntax::Value::parse_str(&value.to_string()).unwrap();
    value
}

/// The keys, other than keywords, and the types in an expanded document.
fn names(expanded: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(expanded, &mut |members| {
        for (key, value) in members {
            if !key.starts_with('@') {
                found.insert(key.clone());
            }
            if key == "@type" && !members.contains_key("@value") {
                let types = value.as_array().unwrap().iter();
                found.extend(types.map(|class| class.as_str().unwrap().to_owned()));
            }
        }
    });
    found
}

/// The ids of the described nodes in an expanded document.
fn ids(expanded: &[Value]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(expanded, &mut |members| {
        if members.len() > 1 {
            found.extend(members.get("@id").map(|id| id.as_str().unwrap().to_owned()));
        }
    });
    found
}

/// The node that describes an IRI.
fn node(expanded: &[Value], iri: &str) -> Value {
    let mut found = Value::Null;
    visit(expanded, &mut |members| {
        if members.len() > 1 && members.get("@id").is_some_and(|id| id == iri) {
            found = json!(members);
        }
    });
    found
}

/// Visits every object of an expanded document, except inside literals.
fn visit(values: &[Value], visitor: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    for value in values {
        match value {
            Value::Object(members) => {
                visitor(members);
                if !members.contains_key("@value") {
                    let inner: Vec<_> = members.values().cloned().collect();
                    visit(&inner, visitor);
                }
            }
            Value::Array(inner) => visit(inner, visitor),
            _ => {}
        }
    }
}
