//! What the requests name and send.

use std::collections::BTreeMap;

use proto::iri;
use serde_json::{Value, json};

use crate::{
    harness::{
        Platform, WebhookReceiver, deliver,
        image::{WEBP, form},
        iri, short_draft,
    },
    tracking::brand::set_logo,
};

/// What requests name.
pub(super) struct Resources {
    /// By the path before it: `/api/tasks/`.
    ids: BTreeMap<String, String>,
    /// Placeholders in requests, and what they stand for.
    pub(super) texts: Vec<(&'static str, String)>,
    /// Of the webhook.
    _receiver: WebhookReceiver,
}

impl Resources {
    pub(super) async fn create(platform: &Platform) -> Self {
        let client = platform.client().await;
        let receiver = WebhookReceiver::start().await;
        let webhook = client
            .create_webhook("delivery.completed", receiver.url())
            .await;
        let completed = deliver(&client, &platform.courier().await).await;
        let first = |page: Value| page["hydra:member"].get(0).cloned();
        let event = client.wait_until("/api/events", first).await;
        let delivered = |page: Value| first(page).filter(|newest| newest["state"] == "delivered");
        let notifications = format!("{}/notifications", iri(&webhook));
        let notification = client.wait_until(&notifications, delivered).await;
        let task = client.create_delivery(short_draft()).await["pickup"].clone();
        let delivery = client.create_delivery(short_draft()).await;
        let calculated = client.post("/api/retail_prices/calculate", short_draft());
        let price = calculated.await.expect(200);
        let me = client.get("/api/me").await.expect(200);
        let store = client.get(&format!("/api/{}", platform.store)).await;
        let store = store.expect(200);
        let tasks_only = platform.client_for(&platform.demo_client, &["tasks"]).await;
        let board = platform.dispatch_board().await;
        let operator = platform.operator().await;
        let desk = operator.create_client("", &["dispatch"]).await;
        let desk = platform.client_for(&desk, &["dispatch"]).await;
        let courier = operator.create_courier("Ada").await;
        let name = iri::name(iri(&task));
        let reported = operator.report_incident(name, "The parcel is wet").await;
        let image = json!({ "@id": iri::of(&operator.upload_image(name).await) });
        let form = String::from_utf8(form(WEBP.as_bytes())).unwrap();
        let incident = json!({ "task": iri(&task), "description": "The parcel is wet" });
        let window = json!({ "timeSlot": "2020-04-02 14:00-15:00", "both": true });

        let created = [
            webhook,
            event,
            notification,
            task.clone(),
            delivery.clone(),
            price,
            me,
            store.clone(),
            image,
        ];
        platform.run_delivery(&set_logo(platform)).await;
        let tracking_url = delivery["trackingUrl"].as_str().unwrap();
        let tracking_page = tracking_url[platform.base_url.len()..].to_owned();
        let static_iris = [
            tracking_page.as_str(),
            "/t/files/page.css",
            store["timeSlot"].as_str().unwrap(),
            "/api/contexts/Delivery",
            "/api/docs/page.css",
            "/errors/not_found",
        ];
        let iris = created.iter().map(iri).chain(static_iris);
        let mut texts = forms(platform);
        texts.extend([
            ("<draft>", short_draft().to_string()),
            ("<webhook>", unreachable_webhook("delivery.picked")),
            ("<other>", unreachable_webhook("delivery.cancelled")),
            (
                "<since>",
                json!({ "since": "2020-04-02T00:00:00Z" }).to_string(),
            ),
            ("<shop>", client.token().to_owned()),
            ("<tasks>", tasks_only.token().to_owned()),
            ("<board>", board.token().to_owned()),
            ("<desk>", desk.token().to_owned()),
            ("<incident>", incident.to_string()),
            ("<image>", form),
            ("<task>", iri(&task).to_owned()),
            ("<reported>", iri::of(&reported)),
            ("<reason>", json!({ "reason": "OTHER" }).to_string()),
            ("<texts>", json!({ "comments": "Fragile" }).to_string()),
            ("<window>", window.to_string()),
            ("<courier>", json!({ "username": courier }).to_string()),
            ("<batch>", json!({ "tasks": [iri(&task)] }).to_string()),
            ("<completed>", completed),
            // One byte more than the default of `--max-body`.
            ("<large>", "x".repeat((1 << 20) + 1)),
        ]);
        Self {
            ids: iris
                .map(|iri| {
                    let (collection, id) = iri.rsplit_once('/').unwrap();
                    (format!("{collection}/"), id.to_owned())
                })
                .collect(),
            texts,
            _receiver: receiver,
        }
    }

    /// The request of an operation, with an existing resource in its path.
    pub(super) fn request(&self, operation: &str) -> String {
        with_parameter(operation, |before| {
            let (_, path) = before.split_once(' ').unwrap();
            self.ids[path].clone()
        })
    }
}

/// The body of a request that creates a webhook.
fn unreachable_webhook(event: &str) -> String {
    json!({ "event": event, "url": "http://127.0.0.1:9/" }).to_string()
}

/// The forms of token requests, with the shop's credentials and with wrong ones.
pub(super) fn forms(platform: &Platform) -> Vec<(&'static str, String)> {
    let form = |key: &str, secret: &str| {
        format!("grant_type=client_credentials&client_id={key}&client_secret={secret}")
    };
    let client = &platform.demo_client;
    vec![
        ("<form>", form(&client.api_key, &client.api_secret)),
        ("<wrong form>", form(&client.api_key, "wrong")),
    ]
}

/// A path with its parameter, if it has one, replaced. The replacement depends on what is before.
pub(super) fn with_parameter(template: &str, replacement: impl FnOnce(&str) -> String) -> String {
    let Some((before, rest)) = template.split_once('{') else {
        return template.to_owned();
    };
    let (_, after) = rest.split_once('}').unwrap();
    format!("{before}{}{after}", replacement(before))
}
