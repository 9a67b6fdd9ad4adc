//! Orders by telephone: dispatch prices and creates deliveries for a store.

use proto::{
    AssertDeliveryRequest, CalculateRetailPriceRequest, CreateDeliveryRequest, Delivery,
    DeliveryDraft, Idempotency, ListTaskEventsRequest, ListTimeSlotChoicesRequest, RetailPrice,
    Task, TaskDraft, TaskEvent, task_draft::Address,
};
use tonic::{Code, Response, Status};
use tonic_types::StatusExt as _;

use super::{Reader, Shop, assert_violation};
use crate::harness::{
    Platform, UNKNOWN_ID,
    definitions::{PRICE_LIST, TIME_SLOT},
    grpc,
};

/// A delivery from the default address of its store.
fn order() -> DeliveryDraft {
    DeliveryDraft {
        dropoff: Some(TaskDraft {
            address: Some(Address::AddressText(
                "48 Rue de Rivoli, 75004 Paris".to_owned(),
            )),
            before: Some("tomorrow 13:00".to_owned()),
            comments: Some("Ring twice".to_owned()),
            ..TaskDraft::default()
        }),
        ..DeliveryDraft::default()
    }
}

fn creation(store: &str, draft: DeliveryDraft) -> CreateDeliveryRequest {
    CreateDeliveryRequest {
        delivery: Some(draft),
        store: store.to_owned(),
        ..CreateDeliveryRequest::default()
    }
}

fn assertion(store: &str) -> AssertDeliveryRequest {
    AssertDeliveryRequest {
        delivery: Some(order()),
        store: store.to_owned(),
        ..AssertDeliveryRequest::default()
    }
}

fn pricing(store: &str) -> CalculateRetailPriceRequest {
    CalculateRetailPriceRequest {
        delivery: Some(order()),
        store: store.to_owned(),
        ..CalculateRetailPriceRequest::default()
    }
}

fn choosing(store: &str) -> ListTimeSlotChoicesRequest {
    ListTimeSlotChoicesRequest {
        store: store.to_owned(),
        ..ListTimeSlotChoicesRequest::default()
    }
}

async fn create(
    desk: &Reader,
    request: CreateDeliveryRequest,
) -> Result<Response<Delivery>, Status> {
    let request = grpc::with_token(&desk.token, request);
    desk.deliveries.clone().create_delivery(request).await
}

/// A delivery without the names that differ from those of another one.
fn without_names(mut delivery: Delivery) -> Delivery {
    delivery.name.clear();
    delivery.tracking_url.clear();
    let tasks = [&mut delivery.pickup, &mut delivery.dropoff];
    for task in tasks.into_iter().flatten() {
        task.name.clear();
        task.delivery.clear();
        task.address.as_mut().unwrap().name.clear();
    }
    delivery
}

/// A delivery of the demo's shop as dispatch sees it.
fn with_store(platform: &Platform, delivery: Delivery) -> Delivery {
    Delivery {
        store: platform.store.clone(),
        store_display_name: "Demo shop".to_owned(),
        ..delivery
    }
}

async fn history(reader: &Reader, task: Option<&Task>) -> Vec<TaskEvent> {
    let request = ListTaskEventsRequest {
        task: task.unwrap().name.clone(),
        ..ListTaskEventsRequest::default()
    };
    reader.list_task_events(request).await.unwrap().events
}

fn is_replayed<T>(response: &Response<T>) -> bool {
    response.metadata().contains_key(proto::IDEMPOTENT_REPLAYED)
}

fn reason(refused: &Status) -> String {
    refused.get_details_error_info().unwrap().reason
}

on_both_databases! {
    async fn dispatch_creates_a_delivery_for_a_store_as_the_store_does(platform: &Platform) {
        let shop = Shop::of(platform.client().await).await;
        let shop_reader = Reader::of_shop(platform, &shop).await;
        let desk = Reader::with(platform, "dispatch").await;

        let by_shop = create(&shop_reader, creation("", order())).await.unwrap().into_inner();
        let asserted = desk.assert_delivery(assertion(&platform.store)).await.unwrap();
        let by_desk = create(&desk, creation(&platform.store, order())).await.unwrap().into_inner();

        let expected = with_store(platform, without_names(by_shop.clone()));
        assert_eq!(without_names(by_desk.clone()), expected);
        let asserted_by_shop = shop_reader.assert_delivery(assertion("")).await.unwrap();
        assert_eq!(asserted, with_store(platform, asserted_by_shop));
        let read = Delivery { warnings: Vec::new(), ..by_desk.clone() };
        assert_eq!(desk.get(&by_desk.name).await.unwrap(), read);
        let as_shop = Delivery { store: String::new(), store_display_name: String::new(), ..read };
        assert_eq!(shop_reader.get(&by_desk.name).await.unwrap(), as_shop);
        for (of_desk, of_shop) in [(&by_desk.pickup, &by_shop.pickup), (&by_desk.dropoff, &by_shop.dropoff)] {
            assert_eq!(history(&desk, of_desk.as_ref()).await, history(&desk, of_shop.as_ref()).await);
        }
        let created = shop.client.wait_until("/api/events?after=0", |log| {
            let members = log["hydra:member"].as_array().unwrap().clone();
            (members.len() == 2).then_some(members)
        });
        assert!(created.await.iter().all(|event| event["event"] == "delivery.created"));
    }

    async fn a_repeated_order_is_one_delivery_and_its_key_is_no_key_of_the_store(platform: &Platform) {
        let [shop, other] = Shop::both(platform).await;
        let shop_reader = Reader::of_shop(platform, &shop).await;
        let desk = Reader::with(platform, "dispatch").await;
        let keyed = |request: CreateDeliveryRequest| CreateDeliveryRequest {
            idempotency: Some(Idempotency { key: "k".to_owned(), request_hash: vec![7; 32] }),
            ..request
        };
        let request = keyed(creation(&shop.store, order()));

        let first = create(&desk, request.clone()).await.unwrap();
        let by_shop = create(&shop_reader, keyed(creation("", order()))).await.unwrap();
        let again = create(&desk, request.clone()).await.unwrap();

        assert!(!is_replayed(&first) && !is_replayed(&by_shop) && is_replayed(&again));
        let first = first.into_inner();
        assert_eq!(again.into_inner(), first);
        assert_ne!(by_shop.into_inner().name, first.name);
        let hash = vec![8; 32];
        let reused = CreateDeliveryRequest {
            idempotency: Some(Idempotency { key: "k".to_owned(), request_hash: hash }),
            ..request
        };
        assert_eq!(reason(&create(&desk, reused).await.unwrap_err()), "IDEMPOTENCY_KEY_REUSED");
        // The other shop has no default address.
        let mut draft = order();
        draft.pickup = Some(TaskDraft {
            address: Some(Address::AddressText("24 Rue de la Paix, 75002 Paris".to_owned())),
            ..TaskDraft::default()
        });
        let of_other = create(&desk, keyed(creation(&other.store, draft))).await.unwrap();
        assert!(!is_replayed(&of_other));
        assert_eq!(of_other.into_inner().store, other.store);
    }

    async fn nothing_is_ordered_for_a_disabled_store(platform: &Platform) {
        let shop = Shop::of(platform.client().await).await;
        let desk = Reader::with(platform, "dispatch").await;
        platform.run_delivery(&["stores", "disable", &shop.store]).await;

        for refused in [
            create(&desk, creation(&shop.store, order())).await.map(|_| ()),
            desk.assert_delivery(assertion(&shop.store)).await.map(|_| ()),
            desk.calculate_retail_price(pricing(&shop.store)).await.map(|_| ()),
            desk.list_time_slot_choices(choosing(&shop.store)).await.map(|_| ()),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!((refused.code(), &*reason(&refused)), (Code::PermissionDenied, "STORE_DISABLED"));
        }

        platform.run_delivery(&["stores", "enable", &shop.store]).await;
        create(&desk, creation(&shop.store, order())).await.unwrap();
    }

    async fn dispatch_uses_the_prices_and_the_time_slots_of_a_store(platform: &Platform) {
        let operator = platform.operator().await;
        operator.apply_time_slot(&platform.store, &format!("{TIME_SLOT}capacity = 1")).await;
        operator.apply_price_list(&platform.store, PRICE_LIST).await;
        let shop = Shop::of(platform.client().await).await;
        let shop_reader = Reader::of_shop(platform, &shop).await;
        let desk = Reader::with(platform, "dispatch").await;
        let unnamed = |price: RetailPrice| RetailPrice { name: String::new(), ..price };

        let price = desk.calculate_retail_price(pricing(&platform.store)).await.unwrap();

        let of_shop = shop_reader.calculate_retail_price(pricing("")).await.unwrap();
        assert_eq!(unnamed(price.clone()), unnamed(of_shop));
        let quoted = DeliveryDraft { retail_price: Some(price.name.clone()), ..order() };
        let created = create(&desk, creation(&platform.store, quoted.clone())).await.unwrap().into_inner();
        assert_eq!((created.price, created.retail_price), (price.price, price.name));
        let refused = create(&desk, creation(&platform.store, quoted)).await.unwrap_err();
        assert_eq!(reason(&refused), "PRICE_USED");

        let choices = async |reader: &Reader, store: &str| {
            reader.list_time_slot_choices(choosing(store)).await.unwrap()
        };
        assert_eq!(choices(&desk, &platform.store).await, choices(&shop_reader, "").await);
        let mut in_slot = order();
        in_slot.dropoff.as_mut().unwrap().time_slot = Some("2020-04-03 12:00-14:00".to_owned());
        create(&desk, creation(&platform.store, in_slot.clone())).await.unwrap();
        for (reader, store) in [(&shop_reader, ""), (&desk, &*platform.store)] {
            let refused = create(reader, creation(store, in_slot.clone())).await.unwrap_err();
            assert_violation(&refused, "dropoff.time_slot");
        }
        assert_eq!(choices(&desk, &platform.store).await, choices(&shop_reader, "").await);
    }

    async fn a_store_is_named_by_dispatch_only(platform: &Platform) {
        let [shop, other] = Shop::both(platform).await;
        let shop = Reader::of_shop(platform, &shop).await;
        let desk = Reader::with(platform, "dispatch").await;
        let reader = Reader::of_all_stores(platform).await;
        let denied = |refused: Status, scope: &str| {
            let expected = (Code::PermissionDenied, format!("the scope {scope} is required"));
            assert_eq!((refused.code(), refused.message().to_owned()), expected);
        };

        for store in [&*platform.store, &*other.store] {
            denied(create(&shop, creation(store, order())).await.unwrap_err(), "dispatch");
            denied(shop.assert_delivery(assertion(store)).await.unwrap_err(), "dispatch:read");
            denied(shop.calculate_retail_price(pricing(store)).await.unwrap_err(), "dispatch:read");
            denied(shop.list_time_slot_choices(choosing(store)).await.unwrap_err(), "dispatch:read");
        }
        denied(create(&desk, creation("", order())).await.unwrap_err(), "deliveries");
        denied(desk.assert_delivery(assertion("")).await.unwrap_err(), "deliveries");
        // What stores nothing is for readers, too.
        denied(create(&reader, creation(&platform.store, order())).await.unwrap_err(), "dispatch");
        let asserted = reader.assert_delivery(assertion(&platform.store)).await.unwrap();
        assert_eq!(asserted, desk.assert_delivery(assertion(&platform.store)).await.unwrap());
        for (store, code) in [(UNKNOWN_ID, Code::NotFound), ("1", Code::InvalidArgument)] {
            let refused = create(&desk, creation(&format!("stores/{store}"), order())).await;
            assert_eq!(refused.unwrap_err().code(), code);
        }
        let empty = creation(&platform.store, DeliveryDraft::default());
        let refused = create(&desk, empty).await.unwrap_err();
        let violations = refused.get_details_bad_request().unwrap().field_violations;
        assert!(violations.iter().any(|found| found.field == "dropoff"), "{violations:?}");
    }
}
