//! What a client with `dispatch:read` reads: the same as dispatch.

use proto::{CompleteTaskRequest, GetCourierRequest, ListCouriersRequest};
use tonic::Code;

use super::{Desk, Order, TODAY, assignment, on, orders, tasks};
use crate::harness::Platform;

on_both_databases! {
    async fn dispatch_read_reads_what_dispatch_reads_and_changes_nothing(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let reader = platform.operator().await.create_client("", &["dispatch:read"]).await;
        let reader = Desk::with(platform, &reader, "dispatch:read").await;
        let [order]: [Order; 1] = orders(&client).await;
        let (ada, tasks) = (desk.courier("Ada").await, tasks(&[&order]));
        desk.assign(&tasks, "", &ada).await;
        let position = reader.list_tasks(on(TODAY)).await.unwrap().position;
        let mut changes = reader.watch(Some(position), &on(TODAY)).await.unwrap();
        let completion = CompleteTaskRequest {
            name: order.pickup.clone(),
            notes: "in the yard".to_owned(),
            ..Default::default()
        };

        desk.complete_task(completion).await.unwrap();

        let watched = loop {
            let change = changes.message().await.unwrap().unwrap();
            // The changes before may come too.
            if change.tasks.iter().any(|task| task.complete_time.is_some()) {
                break change.tasks;
            }
        };
        let listed = reader.list_tasks(on(TODAY)).await.unwrap().tasks;
        assert_eq!(watched, listed);
        assert_eq!(listed, desk.list_tasks(on(TODAY)).await.unwrap().tasks);
        let history = reader.history(&order.pickup).await;
        assert_eq!(history.last().unwrap().notes, "in the yard");
        assert_eq!(history, desk.history(&order.pickup).await);
        assert_eq!(reader.task(&order.pickup).await, desk.task(&order.pickup).await);
        assert_eq!(reader.lists(TODAY).await, desk.lists(TODAY).await);
        let courier = reader.get_courier(GetCourierRequest { name: ada.clone() }).await.unwrap();
        let couriers = reader.list_couriers(ListCouriersRequest::default()).await.unwrap().couriers;
        assert_eq!((&*courier.name, couriers), (&*ada, vec![courier.clone()]));

        let completion = CompleteTaskRequest { name: order.dropoff.clone(), ..Default::default() };
        let refused = [
            reader.complete_task(completion).await.unwrap_err(),
            reader.assign_tasks(assignment(&tasks, "", "")).await.unwrap_err(),
            reader.set(TODAY, Vec::new()).await.unwrap_err(),
            reader.reschedule(&order.dropoff, "2020-04-03 10:00-12:00", false).await.unwrap_err(),
        ];
        for refused in refused {
            assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
        }
        assert_eq!(reader.lists(TODAY).await, desk.lists(TODAY).await);
    }

    async fn dispatch_can_ask_for_a_token_that_only_reads(platform: &Platform) {
        let credentials = platform.operator().await.create_client("", &["dispatch"]).await;
        let reader = Desk::with(platform, &credentials, "dispatch:read").await;

        reader.list_tasks(on(TODAY)).await.unwrap();
        let refused = reader.set(TODAY, Vec::new()).await.unwrap_err();

        assert_eq!(
            (refused.code(), refused.message()),
            (Code::PermissionDenied, "the scope dispatch is required")
        );
    }
}
