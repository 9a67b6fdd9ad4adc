//! What assigning causes: `delivery.assigned`, the state of the delivery, and nothing that shops see of couriers.

use jiff::SignedDuration;
use proto::{
    AssignTasksRequest, Delivery, GetDeliveryRequest, RescheduleTaskRequest, Task,
    deliveries_client::DeliveriesClient, delivery::State, iri, task,
};
use serde_json::json;

use super::{Desk, Order, TODAY, TOMORROW, assignment, orders, place, tasks, with_tasks};
use crate::{
    harness::{ApiClient, Platform, WebhookReceiver, assertions::json_ld, grpc, iri},
    lifecycle::events,
};

/// A delivery as its shop reads it.
async fn read(platform: &Platform, client: &ApiClient, order: &Order) -> Delivery {
    let (channel, _) = platform.connect(&["admin"]).await;
    let name = iri::name(iri(&order.delivery)).to_owned();
    let request = grpc::with_token(client.token(), GetDeliveryRequest { name });
    let found = DeliveriesClient::new(channel).get_delivery(request).await;
    found.unwrap().into_inner()
}

fn single(task: &str, expected: &str, courier: &str) -> AssignTasksRequest {
    AssignTasksRequest {
        single: true,
        ..assignment(&[task], expected, courier)
    }
}

fn reschedule(task: &str, time_slot: &str, both: bool) -> RescheduleTaskRequest {
    RescheduleTaskRequest {
        name: task.to_owned(),
        time_slot: Some(time_slot.to_owned()),
        both,
        ..Default::default()
    }
}

on_both_databases! {
    /// "The dropoff gets a courier, from none": once, and again only after it had none.
    async fn a_delivery_is_assigned_when_its_dropoff_gets_a_courier_and_had_none(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;

        // A pickup alone.
        desk.assign_tasks(single(&order.pickup, "", &ada)).await.unwrap();
        desk.start(&order.pickup).await;
        let mut expected = vec!["started"];
        desk.assign_tasks(single(&order.dropoff, "", &ada)).await.unwrap();
        expected.push("assigned");
        // Another courier, another day, another place, and a conflict.
        desk.assign(&[&order.dropoff], &ada, &ben).await;
        let tomorrow = AssignTasksRequest {
            day: TOMORROW.to_owned(),
            ..assignment(&[&order.pickup], &ben, &ben)
        };
        desk.assign_tasks(tomorrow).await.unwrap();
        let first = AssignTasksRequest { position: Some(0), ..single(&order.dropoff, &ben, &ben) };
        desk.assign_tasks(first).await.unwrap();
        desk.assign(&[&order.dropoff], "", &ada).await;
        desk.complete(&order.pickup).await;
        expected.push("picked");
        // Nothing is sent when it has none any more.
        desk.assign(&[&order.dropoff], &ben, "").await;
        desk.assign(&[&order.dropoff], "", &ada).await;
        expected.push("assigned");
        let list = desk.list(TODAY, &ada).await;
        desk.set(TODAY, vec![with_tasks(&list, &[])]).await.unwrap();
        let list = desk.list(TODAY, &ada).await;
        let dropoff = [order.dropoff.clone()];
        let set = desk.set(TODAY, vec![with_tasks(&list, &dropoff)]).await.unwrap();
        expected.push("assigned");
        // By lists, too, it is not assigned again by another courier or the same.
        let to_ben = [with_tasks(&set[0], &[]), with_tasks(&desk.list(TODAY, &ben).await, &dropoff)];
        let set = desk.set(TODAY, to_ben.to_vec()).await.unwrap();
        desk.set(TODAY, set).await.unwrap();
        desk.start(&order.dropoff).await;
        expected.push("in_transit");

        assert_eq!(events(&client, expected.len()).await, expected);
    }

    async fn each_delivery_of_a_request_is_assigned_once(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second, third]: [Order; 3] = orders(&client).await;

        desk.assign(&[&first.pickup, &first.dropoff, &second.pickup], "", &ada).await;
        let list = desk.list(TODAY, &ada).await;
        let all = tasks(&[&third, &second, &first]);
        desk.set(TODAY, vec![with_tasks(&list, &all)]).await.unwrap();
        desk.start(&third.pickup).await;

        assert_eq!(events(&client, 4).await, ["assigned", "assigned", "assigned", "started"]);
        let log = json_ld(&client.get("/api/events?after=0").await, 200);
        let log = log["hydra:member"].as_array().unwrap().iter();
        let assigned = log.filter(|event| event["event"] == "delivery.assigned");
        let assigned = assigned.map(|event| event["object"].as_str().unwrap());
        let mut assigned: Vec<_> = assigned.collect();
        assigned.sort_unstable();
        let mut expected = [&first, &second, &third].map(|order| iri(&order.delivery));
        expected.sort_unstable();
        assert_eq!(assigned, expected);
    }

    async fn a_webhook_is_told_that_a_delivery_is_assigned(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        let receiver = WebhookReceiver::start().await;
        client.create_webhook("delivery.assigned", receiver.url()).await;

        desk.assign(&[&order.pickup], "", &ada).await;

        let expected = json!({ "data": { "object": iri(&order.delivery), "event": "delivery.assigned" } });
        assert_eq!(receiver.next_notification().await.json(), expected);
    }

    async fn a_delivery_is_assigned_while_its_dropoff_has_a_courier(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [order]: [Order; 1] = orders(&client).await;
        let state = async || read(platform, &client, &order).await.state();
        assert_eq!(state().await, State::Created);

        for (task, expected, courier, found) in [
            (&order.pickup, "", &*ada, State::Created),
            (&order.dropoff, "", &*ada, State::Assigned),
            (&order.pickup, &*ada, "", State::Assigned),
            (&order.dropoff, &*ada, "", State::Created),
            (&order.dropoff, "", &*ada, State::Assigned),
        ] {
            desk.assign_tasks(single(task, expected, courier)).await.unwrap();
            assert_eq!(state().await, found, "{task} {courier}");
        }
        // The states of a delivery that is under way come first.
        desk.start(&order.pickup).await;
        assert_eq!(state().await, State::Started);
        desk.complete(&order.pickup).await;
        assert_eq!(state().await, State::Picked);
    }

    /// "`RescheduleTask` … → TODO; unassigned."
    async fn a_rescheduled_task_is_unassigned(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        desk.fail(&first.dropoff).await;

        let moved = reschedule(&first.dropoff, "2020-04-02 20:00-21:00", false);
        let moved = desk.reschedule_task(moved).await.unwrap();

        assert_eq!((moved.state(), &*moved.courier, &*moved.list_day), (task::State::Todo, "", ""));
        assert_eq!(desk.task(&first.dropoff).await, moved);
        let rest = [&first.pickup, &second.pickup, &second.dropoff].map(Clone::clone);
        assert_eq!(desk.tasks_of(TODAY, &ada).await, rest);
        assert_eq!(read(platform, &client, &first).await.state(), State::Created);
        // The pickup has a courier already.
        desk.assign_tasks(single(&first.dropoff, "", &ada)).await.unwrap();
        let both = reschedule(&first.dropoff, "2020-04-03 20:00-21:00", true);
        desk.reschedule_task(both).await.unwrap();
        for task in tasks(&[&first]) {
            assert_eq!(desk.place(&task).await, place("", "", 0));
        }
        assert_eq!(desk.tasks_of(TODAY, &ada).await, tasks(&[&second]));
        desk.assign(&[&first.dropoff], "", &ada).await;
        assert_eq!(desk.tasks_of(TOMORROW, &ada).await, tasks(&[&first]));
        let expected = ["assigned", "assigned", "failed", "rescheduled", "assigned", "rescheduled", "assigned"];
        assert_eq!(events(&client, expected.len()).await, expected);
    }

    /// "Of the history reason, times, window, `contactName`, never notes, courier or desk."
    async fn a_shop_does_not_see_the_courier_of_its_tasks(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let operator = platform.operator().await;
        let program = operator.create_client("", &["tasks:all"]).await;
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        let program = Desk::with(platform, &program, "tasks:all").await;
        let ada = desk.courier("Ada Martin").await;
        let [order]: [Order; 1] = orders(&client).await;
        platform.advance(SignedDuration::from_mins(1));
        desk.assign(&[&order.pickup], "", &ada).await;

        for (position, name) in (0..).zip(tasks(&[&order])) {
            let task = desk.task(&name).await;
            assert_eq!(desk.place(&name).await, place(&ada, TODAY, position));
            assert_eq!(program.task(&name).await, task);
            let without_courier = Task {
                courier: String::new(),
                list_day: String::new(),
                list_position: 0,
                ..task
            };
            assert_eq!(shop.task(&name).await, without_courier);
        }
        let delivery = read(platform, &client, &order).await;
        let shown = [delivery.pickup.unwrap(), delivery.dropoff.unwrap()];
        assert_eq!(shown, [shop.task(&order.pickup).await, shop.task(&order.dropoff).await]);
        for path in [iri(&order.delivery), iri(&order.delivery["pickup"]), "/api/events", "/api/deliveries"] {
            let text = json_ld(&client.get(path).await, 200).to_string();
            for hidden in [&*ada, "Ada Martin", "listDay", "list_day"] {
                assert!(!text.contains(hidden), "{path} {hidden}: {text}");
            }
        }
    }
}
