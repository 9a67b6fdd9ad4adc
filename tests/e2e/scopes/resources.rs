//! One resource of each collection that a request can name, of a client or of its store.

use delivery::Credentials;
use proto::{
    CreateCourierRequest, ListCourierListsRequest,
    couriers_client::CouriersClient,
    iri::{self, Collection},
};
use serde_json::Value;

use crate::harness::{
    ApiClient, Platform,
    definitions::{Definitions, PRICE_LIST, TIME_SLOT},
    draft, grpc, iri,
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
            (Collection::Addresses, &delivery["pickup"]["address"]),
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
        names.push((Collection::Couriers, create_courier(platform).await));
        let task = name(&delivery["pickup"]);
        let incident = operator.report_incident(&task, "The parcel is wet").await;
        names.push((Collection::Incidents, incident));
        // Not of the delivery that the tests erase.
        let other_delivery = client.create_delivery(draft()).await;
        let task = name(&other_delivery["pickup"]);
        let image = operator.upload_image(&task).await;
        names.push((Collection::Images, image));
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

/// Stand for the texts of `Existing`.
pub(super) const TASK: &str = "<task>";
pub(super) const COURIER: &str = "<courier>";
pub(super) const EMPTY_ETAG: &str = "<empty etag>";

/// What a request may have to name besides what a test asks for.
pub(super) struct Existing {
    task: String,
    /// Without tasks.
    courier: String,
    /// Of the courier's list.
    empty_etag: String,
}

impl Existing {
    pub(super) async fn create(platform: &Platform) -> Self {
        let delivery = platform.client().await.create_delivery(draft()).await;
        let (channel, token) = platform.connect(&["admin"]).await;
        let request = grpc::with_token(&token, ListCourierListsRequest::default());
        let mut couriers = CouriersClient::new(channel);
        let lists = couriers.list_courier_lists(request);
        Self {
            task: name(&delivery["pickup"]),
            courier: create_courier(platform).await,
            empty_etag: lists.await.unwrap().into_inner().empty_etag,
        }
    }

    /// What a text stands for: itself, unless it is one of the three.
    pub(super) fn text<'a>(&'a self, text: &'a str) -> &'a str {
        match text {
            TASK => &self.task,
            COURIER => &self.courier,
            EMPTY_ETAG => &self.empty_etag,
            _ => text,
        }
    }
}

async fn create_courier(platform: &Platform) -> String {
    let (channel, token) = platform.connect(&["admin"]).await;
    let request = CreateCourierRequest {
        display_name: "Ada".to_owned(),
        ..CreateCourierRequest::default()
    };
    let request = grpc::with_token(&token, request);
    let created = CouriersClient::new(channel).create_courier(request).await;
    created.unwrap().into_inner().name
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
