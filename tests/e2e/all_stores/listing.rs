//! `GetDelivery` and `ListDeliveries` with `dispatch:read`.

use proto::{Delivery, ListDeliveriesRequest, Task, iri, task::Status};
use serde_json::json;
use tonic::Code;

use super::{Reader, Shop, assert_violation, draft, names};
use crate::harness::{Platform, UNKNOWN_ID};

fn all() -> ListDeliveriesRequest {
    ListDeliveriesRequest::default()
}

fn on(day: &str) -> ListDeliveriesRequest {
    ListDeliveriesRequest {
        day: day.to_owned(),
        ..all()
    }
}

/// Deliveries of two shops, the latest first: of the day after the next, of the next, and of today.
async fn create(first: &Shop, second: &Shop) -> [String; 5] {
    [
        // The day of midnight is the one that it begins.
        first.deliver("2020-04-04 00:00").await,
        second.deliver("2020-04-03 13:00").await,
        first.deliver("2020-04-03 10:00").await,
        second.deliver("2020-04-03 09:00").await,
        second.deliver("2020-04-02 20:00").await,
    ]
}

on_both_databases! {
    async fn a_delivery_of_any_store_is_read_with_its_store_and_its_courier(platform: &Platform) {
        let [_, shop] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        let name = shop.deliver("2020-04-03 13:00").await;
        let as_shop = Reader::of_shop(platform, &shop).await.get(&name).await.unwrap();
        let dropoff = as_shop.dropoff.clone().unwrap();
        let ada = platform.operator().await.create_courier("Ada").await;
        let courier = format!("--courier={ada}");
        platform.run_delivery(&["tasks", "assign", &courier, &iri::of(&dropoff.name)]).await;

        let read = reader.get(&name).await.unwrap();

        let placed = reader.task(&dropoff.name).await;
        assert_eq!(placed.courier, ada);
        let as_shop = Reader::of_shop(platform, &shop).await.get(&name).await.unwrap();
        assert_eq!((&*as_shop.store, &*as_shop.dropoff.as_ref().unwrap().courier), ("", ""));
        let with_place = |task: &Task, placed: &Task| Task {
            courier: ada.clone(),
            list_day: placed.list_day.clone(),
            list_position: placed.list_position,
            ..task.clone()
        };
        let pickup = as_shop.pickup.as_ref().unwrap();
        let placed_pickup = reader.task(&pickup.name).await;
        let expected = Delivery {
            store: shop.store.clone(),
            store_display_name: "Another shop".to_owned(),
            pickup: Some(with_place(pickup, &placed_pickup)),
            dropoff: Some(with_place(as_shop.dropoff.as_ref().unwrap(), &placed)),
            ..as_shop.clone()
        };
        assert_eq!(read, expected);
        assert_eq!(reader.list_deliveries(all()).await.unwrap().deliveries, [expected]);

        let unknown = format!("deliveries/{UNKNOWN_ID}");
        assert_eq!(reader.get(&unknown).await.unwrap_err().code(), Code::NotFound);
        assert_eq!(reader.get("deliveries/1").await.unwrap_err().code(), Code::InvalidArgument);
    }

    async fn deliveries_of_all_stores_are_listed_in_pages_the_latest_dropoff_first(platform: &Platform) {
        let [first, second] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        let mut expected = create(&first, &second).await.to_vec();
        // Those that end at one instant are in the order of their ids.
        for shop in [&first, &second] {
            expected.insert(0, shop.deliver("2020-04-04 00:00").await);
        }

        for (size, pages) in [(1, 7), (3, 3), (7, 1)] {
            let mut request = ListDeliveriesRequest { page_size: Some(size), ..all() };
            let mut read = Vec::new();
            loop {
                let page = reader.list_deliveries(request.clone()).await.unwrap();
                read.push(page.clone());
                if page.next_page_token.is_empty() {
                    break;
                }
                request.page_token = page.next_page_token;
            }
            assert_eq!(read.len(), pages, "{size}");
            let listed: Vec<_> = read.iter().flat_map(|page| names(&page.deliveries)).collect();
            assert_eq!(listed, expected, "{size}");
            for [page, next] in read.array_windows() {
                let page_token = next.previous_page_token.clone();
                let back = ListDeliveriesRequest { page_token, ..request.clone() };
                let back = reader.list_deliveries(back).await.unwrap();
                assert_eq!(back.deliveries, page.deliveries, "{size}");
            }
        }
    }

    async fn deliveries_are_filtered_by_day_and_store(platform: &Platform) {
        let [first, second] = Shop::both(platform).await;
        let reader = Reader::of_all_stores(platform).await;
        let [midnight, noon, ten, nine, today] = create(&first, &second).await;
        let with_reference = |reference: &str| {
            let mut draft = draft("2020-04-05 10:00");
            draft["externalReference"] = json!(reference);
            draft
        };
        let [same, same_too] = [first.create(with_reference("A-1")).await, second.create(with_reference("A-1")).await];
        first.create(with_reference("A-2")).await;
        assert_eq!(first.client.delete(&iri::of(&ten)).await.status, 204);
        let of = |store: &str, day: &str| ListDeliveriesRequest { store: store.to_owned(), ..on(day) };

        for (request, expected) in [
            (on("2020-04-02"), vec![&today]),
            (on("today"), vec![&today]),
            (on("2020-04-03"), vec![&noon, &ten, &nine]),
            (on("2020-04-04"), vec![&midnight]),
            (on("2020-04-06"), vec![]),
            (of(&second.store, "2020-04-03"), vec![&nine, &noon]),
            (of(&first.store, "2020-04-03"), vec![&ten]),
            // The newest of a store is the first.
            (of(&second.store, ""), vec![&same_too, &today, &nine, &noon]),
            (ListDeliveriesRequest { cancelled: Some(true), ..on("2020-04-03") }, vec![&ten]),
            (ListDeliveriesRequest { cancelled: Some(false), ..on("2020-04-03") }, vec![&noon, &nine]),
            (ListDeliveriesRequest { status: Some(Status::Done.into()), ..on("2020-04-03") }, vec![]),
            (
                ListDeliveriesRequest { dropoff_until: Some("2020-04-03 10:00".to_owned()), ..on("2020-04-03") },
                vec![&ten, &nine],
            ),
            (ListDeliveriesRequest { dropoff_until: Some("2020-04-03 09:00".to_owned()), ..all() }, vec![&nine, &today]),
            (
                ListDeliveriesRequest { external_reference: Some("A-1".to_owned()), ..all() },
                vec![&same_too, &same],
            ),
            (
                ListDeliveriesRequest {
                    external_reference: Some("A-1".to_owned()),
                    cancelled: Some(true),
                    ..all()
                },
                vec![],
            ),
        ] {
            let listed = reader.list_deliveries(request.clone()).await.unwrap();
            assert_eq!(names(&listed.deliveries), expected, "{request:?}");
            assert_eq!(listed.next_page_token, "", "{request:?}");
        }
    }

    async fn an_invalid_list_is_refused(platform: &Platform) {
        let reader = Reader::of_all_stores(platform).await;
        let open = ListDeliveriesRequest { status: Some(Status::Todo.into()), ..all() };

        for (request, field) in [
            (on("tomorrow"), "day"),
            (on("2020-4-2"), "day"),
            // Without a day, a page could read all deliveries of the platform.
            (open, "day"),
            (ListDeliveriesRequest { cancelled: Some(false), ..all() }, "day"),
            (ListDeliveriesRequest { created_from: Some("today".to_owned()), ..all() }, "day"),
            (ListDeliveriesRequest { page_size: Some(0), ..all() }, "page_size"),
            (ListDeliveriesRequest { page_token: "x".to_owned(), ..all() }, "page_token"),
            (ListDeliveriesRequest { dropoff_from: Some("?".to_owned()), ..all() }, "dropoff_from"),
        ] {
            let refused = reader.list_deliveries(request).await.unwrap_err();
            assert_violation(&refused, field);
        }
        for (store, code) in [("1", Code::InvalidArgument), (UNKNOWN_ID, Code::NotFound)] {
            let request = ListDeliveriesRequest { store: format!("stores/{store}"), ..all() };
            assert_eq!(reader.list_deliveries(request).await.unwrap_err().code(), code);
        }
    }

    async fn a_shop_names_no_store_and_no_day(platform: &Platform) {
        let [shop, _] = Shop::both(platform).await;
        let reader = Reader::of_shop(platform, &shop).await;
        let own = ListDeliveriesRequest { store: shop.store.clone(), ..all() };

        reader.list_deliveries(all()).await.unwrap();
        for request in [own, on("today")] {
            let refused = reader.list_deliveries(request).await.unwrap_err();
            let expected = (Code::PermissionDenied, "the scope dispatch:read is required");
            assert_eq!((refused.code(), refused.message()), expected);
        }
    }
}
