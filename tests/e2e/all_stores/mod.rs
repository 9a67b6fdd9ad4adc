//! Deliveries of all stores, as those who dispatch read them.

mod commands;
mod listing;
mod ordering;
mod searching;
mod tasks;

use proto::{
    AssertDeliveryRequest, CalculateRetailPriceRequest, Delivery, GetDeliveryRequest,
    GetTaskRequest, ListDeliveriesRequest, ListDeliveriesResponse, ListTaskEventsRequest,
    ListTaskEventsResponse, ListTasksRequest, ListTasksResponse, ListTimeSlotChoicesRequest,
    ListTimeSlotChoicesResponse, RetailPrice, SearchDeliveriesRequest, SearchDeliveriesResponse,
    Task, WatchTasksRequest, WatchTasksResponse, deliveries_client::DeliveriesClient, iri,
    retail_prices_client::RetailPricesClient, tasks_client::TasksClient,
    time_slots_client::TimeSlotsClient,
};
use serde_json::{Value, json};
use tonic::{Code, Status, Streaming, transport::Channel};
use tonic_types::StatusExt as _;

use crate::harness::{ApiClient, Platform, grpc, iri};

type TaskChanges = Streaming<WatchTasksResponse>;

/// A client that reads deliveries over gRPC.
struct Reader {
    deliveries: DeliveriesClient<Channel>,
    tasks: TasksClient<Channel>,
    prices: RetailPricesClient<Channel>,
    time_slots: TimeSlotsClient<Channel>,
    token: String,
}

macro_rules! calls {
    ($($service:ident.$rpc:ident($request:ident) -> $response:ident;)+) => {
        impl Reader {$(
            async fn $rpc(&self, request: $request) -> Result<$response, Status> {
                let request = grpc::with_token(&self.token, request);
                Ok(self.$service.clone().$rpc(request).await?.into_inner())
            }
        )+}
    };
}

calls! {
    deliveries.assert_delivery(AssertDeliveryRequest) -> Delivery;
    deliveries.get_delivery(GetDeliveryRequest) -> Delivery;
    deliveries.list_deliveries(ListDeliveriesRequest) -> ListDeliveriesResponse;
    deliveries.search_deliveries(SearchDeliveriesRequest) -> SearchDeliveriesResponse;
    tasks.get_task(GetTaskRequest) -> Task;
    tasks.list_tasks(ListTasksRequest) -> ListTasksResponse;
    tasks.list_task_events(ListTaskEventsRequest) -> ListTaskEventsResponse;
    tasks.watch_tasks(WatchTasksRequest) -> TaskChanges;
    prices.calculate_retail_price(CalculateRetailPriceRequest) -> RetailPrice;
    time_slots.list_time_slot_choices(ListTimeSlotChoicesRequest) -> ListTimeSlotChoicesResponse;
}

impl Reader {
    /// With the scope `dispatch:read` only.
    async fn of_all_stores(platform: &Platform) -> Self {
        Self::with(platform, "dispatch:read").await
    }

    async fn with(platform: &Platform, scope: &str) -> Self {
        let operator = platform.operator().await;
        let scopes = [scope];
        let credentials = operator.create_client("", &scopes).await;
        let (channel, token) = grpc::connect(&platform.core_url, &credentials, &scopes).await;
        Self::new(channel, token)
    }

    async fn of_shop(platform: &Platform, shop: &Shop) -> Self {
        let (channel, _) = platform.connect(&["admin"]).await;
        Self::new(channel, shop.client.token().to_owned())
    }

    fn new(channel: Channel, token: String) -> Self {
        Self {
            deliveries: DeliveriesClient::new(channel.clone()),
            tasks: TasksClient::new(channel.clone()),
            prices: RetailPricesClient::new(channel.clone()),
            time_slots: TimeSlotsClient::new(channel),
            token,
        }
    }

    async fn get(&self, name: &str) -> Result<Delivery, Status> {
        let name = name.to_owned();
        self.get_delivery(GetDeliveryRequest { name }).await
    }

    async fn search(&self, text: &str) -> Result<SearchDeliveriesResponse, Status> {
        let text = text.to_owned();
        self.search_deliveries(SearchDeliveriesRequest { text })
            .await
    }

    async fn task(&self, name: &str) -> Task {
        let name = name.to_owned();
        self.get_task(GetTaskRequest { name }).await.unwrap()
    }
}

/// A client of a store.
struct Shop {
    client: ApiClient,
    /// `stores/<id>`.
    store: String,
}

impl Shop {
    async fn of(client: ApiClient) -> Self {
        let me = client.get("/api/me").await.expect(200);
        let store = iri::name(me["store"].as_str().unwrap()).to_owned();
        Self { client, store }
    }

    /// The demo's shop, and another one.
    async fn both(platform: &Platform) -> [Self; 2] {
        [
            Self::of(platform.client().await).await,
            Self::of(platform.new_store_client().await).await,
        ]
    }

    /// Creates a delivery whose dropoff ends at a local time. Returns its name.
    async fn deliver(&self, before: &str) -> String {
        self.create(draft(before)).await
    }

    async fn create(&self, draft: Value) -> String {
        let delivery = self.client.create_delivery(draft).await;
        iri::name(iri(&delivery)).to_owned()
    }
}

fn draft(before: &str) -> Value {
    json!({
        "pickup": { "address": {"streetAddress": "24 Rue de la Paix", "latLng": [48.869, 2.331]} },
        "dropoff": {
            "address": {"streetAddress": "48 Rue de Rivoli", "latLng": [48.857, 2.353]},
            "before": before,
        },
    })
}

fn names(deliveries: &[Delivery]) -> Vec<&str> {
    let names = deliveries.iter().map(|delivery| &*delivery.name);
    names.collect()
}

/// Fails unless there is a violation in exactly this field.
#[track_caller]
fn assert_violation(refused: &Status, field: &str) {
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    let violations = refused.get_details_bad_request().unwrap().field_violations;
    let fields: Vec<_> = violations.iter().map(|found| &*found.field).collect();
    assert_eq!(fields, [field], "{violations:?}");
}
