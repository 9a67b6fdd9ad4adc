//! One resource of each collection that a request can name, of a client or of its store.

use delivery::Credentials;
use proto::iri::{self, Collection};
use serde_json::Value;

use crate::harness::{
    ApiClient, Platform,
    definitions::{Definitions, PRICE_LIST, TIME_SLOT},
    draft, iri,
};

/// The name of one resource per collection.
pub(super) struct Resources {
    client: ApiClient,
    names: Vec<(Collection, String)>,
}

impl Resources {
    /// Creates resources of a client with the scopes `deliveries` and `tasks`.
    pub(super) async fn create(
        platform: &Platform,
        store: &str,
        credentials: &Credentials,
    ) -> Self {
        let client = platform
            .client_for(credentials, &["deliveries", "tasks"])
            .await;
        let definitions = Definitions::as_operator(platform).await;
        let time_slot = definitions.apply_time_slot(store, TIME_SLOT).await.unwrap();
        definitions
            .apply_price_list(store, PRICE_LIST)
            .await
            .unwrap();
        // Another client: the tests disable it, and a disabled client cannot call.
        let operator = platform.operator().await;
        let other_client = operator.create_client(store, &["deliveries"]).await;
        let other_client = platform.client_for(&other_client, &["deliveries"]).await;
        let other_client = other_client.get("/api/me").await.expect(200);

        let webhook = create_webhook(&client).await;
        let delivery = client.create_delivery(draft()).await;
        let courier = platform.courier().await;
        for task in ["pickup", "dropoff"] {
            courier.complete(iri(&delivery[task])).await;
        }
        let first = |page: Value| page["hydra:member"].get(0).cloned();
        let notifications = format!("{}/notifications", iri(&webhook));
        let notification = client.wait_until(&notifications, first).await;
        let event = client.wait_until("/api/events", first).await;
        let price = client
            .post("/api/retail_prices/calculate", draft())
            .await
            .expect(200);

        let mut names: Vec<_> = [
            (Collection::ApiClients, &other_client),
            (Collection::Deliveries, &delivery),
            (Collection::Events, &event),
            (Collection::Notifications, &notification),
            (Collection::RetailPrices, &price),
            (Collection::Tasks, &delivery["pickup"]),
            (Collection::Webhooks, &webhook),
        ]
        .into_iter()
        .map(|(collection, resource)| (collection, name(resource)))
        .collect();
        names.push((Collection::Stores, store.to_owned()));
        names.push((Collection::TimeSlots, time_slot.name));
        Self { client, names }
    }

    /// The name to call an RPC with: of a new webhook if the RPC deletes it.
    pub(super) async fn name_for(&self, rpc: &str, collection: Collection) -> String {
        if rpc == "Webhooks/DeleteWebhook" {
            return name(&create_webhook(&self.client).await);
        }
        let mut names = self.names.iter();
        let (_, name) = names.find(|(of, _)| *of == collection).unwrap();
        name.clone()
    }
}

async fn create_webhook(client: &ApiClient) -> Value {
    // Nothing listens there.
    client
        .create_webhook("delivery.completed", "http://127.0.0.1:9/")
        .await
}

fn name(resource: &Value) -> String {
    iri::name(iri(resource)).to_owned()
}
