//! The commands on tasks over REST, by couriers' phones and by dispatch.

mod assigning;
mod batches;
mod commands;
mod correcting;
mod images;
mod incidents;
mod refusals;

use hyper::Method;
use serde_json::{Value, json};

use super::{Desk, Order, orders};
use crate::harness::{ApiClient, Platform, Response, assertions::json_ld};

/// A shop with an order, the client of a desk, and the phone of a courier who has the order.
struct Scene {
    shop: ApiClient,
    desk: ApiClient,
    phone: ApiClient,
    /// The same desk over gRPC.
    board: Desk,
    /// `couriers/<id>` of Ada, whose phone it is.
    ada: String,
    order: Order,
}

impl Scene {
    async fn set(platform: &Platform) -> Self {
        let operator = platform.operator().await;
        let credentials = operator.create_client("", &["dispatch"]).await;
        let board = Desk::with(platform, &credentials, "dispatch").await;
        let ada = board.courier("Ada").await;
        let shop = platform.client().await;
        let [order]: [Order; 1] = orders(&shop).await;
        board.assign(&[&order.pickup], "", &ada).await;
        Self {
            desk: platform.client_for(&credentials, &["dispatch"]).await,
            phone: phone(platform, &ada).await,
            shop,
            board,
            ada,
            order,
        }
    }
}

/// The REST client of a courier's phone.
async fn phone(platform: &Platform, courier: &str) -> ApiClient {
    let operator = platform.operator().await;
    let credentials = operator.create_courier_client(courier).await;
    platform.client_for(&credentials, &["courier"]).await
}

/// Sends a command on a task; without a body if it is null.
async fn command(client: &ApiClient, task: &str, command: &str, body: Value) -> Response {
    let request = client.request(Method::PUT, &format!("/api/{task}/{command}"));
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    client.send(request, body).await
}

/// Sends a command with an idempotency key.
async fn keyed(client: &ApiClient, task: &str, command: &str, body: &Value) -> Response {
    let request = client.request(Method::PUT, &format!("/api/{task}/{command}"));
    let request = request.header("idempotency-key", "a key");
    client.send(request, body.to_string()).await
}

/// The task as a client reads it.
async fn read(client: &ApiClient, task: &str) -> Value {
    json_ld(&client.get(&format!("/api/{task}")).await, 200)
}

/// A task in another state, for a client that sees couriers, changed at an instant.
fn in_state(task: &Value, state: &str, updated_at: &str) -> Value {
    let mut task = task.clone();
    task["state"] = json!(state);
    task["status"] = json!(state);
    task["updatedAt"] = json!(updated_at);
    task
}

#[track_caller]
fn assert_conflict(response: &Response, code: &str, message: &str) {
    let found = (response.status, response.json["code"].as_str());
    assert_eq!(found, (409, Some(code)), "{}", response.json);
    let detail = response.json["detail"].as_str().unwrap();
    assert!(detail.contains(message), "{detail}");
}
