//! Deliveries that shops have ordered.

use proto::iri;
use serde_json::{Value, json};

use super::TODAY;
use crate::harness::{ApiClient, iri};

/// A delivery, and the names of its tasks.
pub(super) struct Order {
    pub(super) delivery: Value,
    pub(super) pickup: String,
    pub(super) dropoff: String,
}

impl Order {
    /// With the pickup at noon of a day, and the dropoff in the evening.
    pub(super) async fn on(client: &ApiClient, day: &str) -> Self {
        let (pickup, dropoff) = (format!("{day} 12:00-14:00"), format!("{day} 18:00-19:00"));
        Self::within(client, &pickup, &dropoff).await
    }

    /// With two time slots.
    pub(super) async fn within(client: &ApiClient, pickup: &str, dropoff: &str) -> Self {
        let draft = json!({
            "pickup": {
                "address": {"streetAddress": "24 Rue de la Paix", "latLng": [48.869, 2.331]},
                "timeSlot": pickup,
            },
            "dropoff": {
                "address": {"streetAddress": "48 Rue de Rivoli", "latLng": [48.857, 2.353]},
                "timeSlot": dropoff,
            },
        });
        let delivery = client.create_delivery(draft).await;
        let name = |task: &str| iri::name(iri(&delivery[task])).to_owned();
        Self {
            pickup: name("pickup"),
            dropoff: name("dropoff"),
            delivery,
        }
    }
}

/// Deliveries of the tests' day.
pub(super) async fn orders<const N: usize>(client: &ApiClient) -> [Order; N] {
    let mut orders = Vec::new();
    for _ in 0..N {
        orders.push(Order::on(client, TODAY).await);
    }
    let orders: Result<_, Vec<_>> = orders.try_into();
    orders.ok().unwrap()
}
