//! Requests that are repeated with their idempotency keys.

use proto::{
    AssignTasksRequest, AssignTasksResponse, Courier, CreateCourierRequest, Idempotency,
    ListCouriersRequest, SetCourierListsRequest, UpdateCourierRequest,
};
use tonic::{Response, Status};

use super::{Desk, Order, TODAY, assert_refused, assignment, orders, place, tasks, with_tasks};
use crate::harness::{Platform, grpc};

fn key(key: &str, hash: u8) -> Idempotency {
    Idempotency {
        key: key.to_owned(),
        request_hash: vec![hash; 32],
    }
}

fn is_replayed<T>(response: &Response<T>) -> bool {
    let value = response.metadata().get(proto::IDEMPOTENT_REPLAYED);
    value.is_some_and(|value| value == "true")
}

async fn create(desk: &Desk, display_name: &str, hash: u8) -> Result<Response<Courier>, Status> {
    let request = CreateCourierRequest {
        display_name: display_name.to_owned(),
        idempotency: Some(key("create", hash)),
        ..Default::default()
    };
    let request = grpc::with_token(&desk.token, request);
    desk.couriers.clone().create_courier(request).await
}

async fn rename(desk: &Desk, courier: &str, display_name: &str) -> Response<Courier> {
    let request = UpdateCourierRequest {
        name: courier.to_owned(),
        display_name: Some(display_name.to_owned()),
        idempotency: Some(key(display_name, 7)),
        ..Default::default()
    };
    let request = grpc::with_token(&desk.token, request);
    desk.couriers.clone().update_courier(request).await.unwrap()
}

async fn assign(desk: &Desk, request: AssignTasksRequest) -> Response<AssignTasksResponse> {
    let request = grpc::with_token(&desk.token, request);
    desk.couriers.clone().assign_tasks(request).await.unwrap()
}

on_both_databases! {
    async fn a_repeated_change_of_a_courier_gets_its_first_response(platform: &Platform) {
        let desk = Desk::authorized(platform).await;

        let created = create(&desk, "Ada", 1).await.unwrap();
        assert!(!is_replayed(&created));
        let created = created.into_inner();
        let renamed = rename(&desk, &created.name, "Ben").await;
        assert!(!is_replayed(&renamed));
        let renamed = renamed.into_inner();
        let eve = rename(&desk, &created.name, "Eve").await.into_inner();

        let repeated = create(&desk, "Ada", 1).await.unwrap();
        assert!(is_replayed(&repeated));
        assert_eq!(repeated.into_inner(), created);
        let repeated = rename(&desk, &created.name, "Ben").await;
        assert!(is_replayed(&repeated));
        assert_eq!(repeated.into_inner(), renamed);
        assert_refused(&create(&desk, "Zoe", 2).await.unwrap_err(), "IDEMPOTENCY_KEY_REUSED");
        let listed = desk.list_couriers(ListCouriersRequest::default()).await.unwrap();
        assert_eq!(listed.couriers, [eve]);
    }

    /// Whatever happened since; also if tasks were left where they are.
    async fn a_repeated_assignment_gets_its_first_response_and_moves_nothing(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&second.pickup], "", &ben).await;
        let request = AssignTasksRequest {
            idempotency: Some(key("assign", 7)),
            ..assignment(&[&first.pickup, &second.pickup], "", &ada)
        };

        let assigned = assign(&desk, request.clone()).await;

        assert!(!is_replayed(&assigned));
        assert_eq!(assigned.into_inner().conflicts, [&*second.pickup]);
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&first]));
        desk.assign(&[&first.pickup], &ada, "").await;
        desk.assign(&[&second.pickup], &ben, "").await;
        let before = desk.lists(TODAY).await;
        let repeated = assign(&desk, request).await;
        assert!(is_replayed(&repeated));
        assert_eq!(repeated.into_inner().conflicts, [&*second.pickup]);
        assert_eq!(desk.lists(TODAY).await, before);
        assert_eq!(desk.place(&first.pickup).await, place("", "", 0));
    }

    async fn a_repeated_change_of_lists_gets_its_first_response_and_changes_nothing(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        let set = async || {
            let empty = desk.lists(TODAY).await.empty_etag;
            let list = proto::CourierList { courier: ada.clone(), etag: empty, ..Default::default() };
            let request = SetCourierListsRequest {
                day: TODAY.to_owned(),
                lists: vec![with_tasks(&list, &tasks(&[&order]))],
                idempotency: Some(key("set", 7)),
            };
            let request = grpc::with_token(&desk.token, request);
            desk.couriers.clone().set_courier_lists(request).await.unwrap()
        };

        let first = set().await;
        assert!(!is_replayed(&first));
        desk.assign(&[&order.pickup], &ada, "").await;
        let before = desk.lists(TODAY).await;

        let repeated = set().await;
        assert!(is_replayed(&repeated));
        assert_eq!(repeated.into_inner(), first.into_inner());
        assert_eq!(desk.lists(TODAY).await, before);
    }
}
