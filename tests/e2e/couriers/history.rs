//! Assignments in the history of a task, as dispatch, other programs and the shop read it.

use jiff::SignedDuration;
use proto::{AssignTasksRequest, TaskEvent, task_event::Actor};
use serde_json::{Value, json};

use super::{Desk, Order, TODAY, TOMORROW, assignment, orders, with_tasks};
use crate::harness::{Platform, assertions::json_ld, iri};

/// A time of the tests' day.
#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
fn at(time: &str) -> Option<prost_types::Timestamp> {
    let instant: jiff::Timestamp = format!("2020-04-02T{time}+02:00").parse().unwrap();
    Some(prost_types::Timestamp {
        seconds: instant.as_second(),
        nanos: 0,
    })
}

/// Gives the tasks of a delivery to Ada, to Ben on the next day, to nobody, and by lists the dropoff to Ada and
/// to nobody, a minute apart.
async fn work(platform: &Platform, desk: &Desk, order: &Order, [ada, ben]: [&str; 2]) {
    let next = || platform.advance(SignedDuration::from_mins(1));
    next();
    desk.assign(&[&order.pickup], "", ada).await;
    next();
    let to_ben = AssignTasksRequest {
        day: TOMORROW.to_owned(),
        ..assignment(&[&order.pickup], ada, ben)
    };
    desk.assign_tasks(to_ben).await.unwrap();
    next();
    desk.assign(&[&order.pickup], ben, "").await;
    for dropoff in [&[order.dropoff.clone()][..], &[]] {
        next();
        let list = desk.list(TODAY, ada).await;
        let set = desk.set(TODAY, vec![with_tasks(&list, dropoff)]).await;
        set.unwrap();
    }
}

on_both_databases! {
    async fn dispatch_reads_which_courier_a_task_had_and_who_assigned_it(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;

        work(platform, &desk, &order, [&ada, &ben]).await;

        let event = |event: &str, time: &str, courier: &str, list_day: &str| TaskEvent {
            event: format!("task:{event}"),
            create_time: at(time),
            occurred_time: at(time),
            actor: Actor::Dispatch.into(),
            api_client: desk.api_client.clone(),
            courier: courier.to_owned(),
            list_day: list_day.to_owned(),
            ..Default::default()
        };
        let created = TaskEvent {
            actor: Actor::Unspecified.into(),
            api_client: String::new(),
            ..event("created", "11:00:00", "", "")
        };
        let of_pickup = vec![
            created,
            event("assigned", "11:01:00", &ada, TODAY),
            event("assigned", "11:02:00", &ben, TOMORROW),
            event("unassigned", "11:03:00", "", ""),
        ];
        let by_lists = [
            event("assigned", "11:04:00", &ada, TODAY),
            event("unassigned", "11:05:00", "", ""),
        ];
        assert_eq!(desk.history(&order.pickup).await, of_pickup);
        assert_eq!(desk.history(&order.dropoff).await, [&of_pickup[..], &by_lists].concat());
    }

    /// "Never notes, courier or desk"; another program of the platform sees as much.
    async fn others_read_that_a_task_is_assigned_and_not_to_whom(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [order]: [Order; 1] = orders(&client).await;

        work(platform, &desk, &order, [&ada, &ben]).await;

        let mut expected = desk.history(&order.dropoff).await;
        assert_eq!(expected.len(), 6);
        for event in &mut expected {
            event.set_actor(Actor::Unspecified);
            event.api_client.clear();
            event.courier.clear();
            event.list_day.clear();
        }
        let program = platform.operator().await.create_client("", &["tasks:all"]).await;
        for (credentials, scope) in [(&platform.demo_client, "tasks"), (&program, "tasks:all")] {
            let reader = Desk::with(platform, credentials, scope).await;
            assert_eq!(reader.history(&order.dropoff).await, expected, "{scope}");
        }
        let path = format!("{}/events", iri(&order.delivery["dropoff"]));
        let found = json_ld(&client.get(&path).await, 200);
        let members = [
            ("created", "11:00:00"),
            ("assigned", "11:01:00"),
            ("assigned", "11:02:00"),
            ("unassigned", "11:03:00"),
            ("assigned", "11:04:00"),
            ("unassigned", "11:05:00"),
        ];
        let members = members.map(|(event, time)| json!({
            "@type": "TaskEvent",
            "name": format!("task:{event}"),
            "data": {},
            "createdAt": format!("2020-04-02T{time}+02:00"),
            "occurredAt": format!("2020-04-02T{time}+02:00"),
        }));
        assert_eq!(found["hydra:member"], Value::from(members.to_vec()));
    }

    /// Another place in the same list, a conflict, and what is settled.
    async fn what_gives_a_task_no_other_list_is_not_in_its_history(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let [first, second]: [Order; 2] = orders(&client).await;
        desk.assign(&[&first.pickup, &second.pickup], "", &ada).await;
        let names = async |task: &str| {
            let history = desk.history(task).await;
            history.into_iter().map(|event| event.event).collect::<Vec<_>>()
        };

        desk.assign(&[&first.pickup], &ada, &ada).await;
        let list = desk.list(TODAY, &ada).await;
        let reversed: Vec<_> = list.tasks.iter().rev().cloned().collect();
        desk.set(TODAY, vec![with_tasks(&list, &reversed)]).await.unwrap();
        desk.assign(&[&first.pickup, &second.pickup], &ben, &ben).await;

        for task in [&first.pickup, &first.dropoff, &second.pickup, &second.dropoff] {
            assert_eq!(names(task).await, ["task:created", "task:assigned"]);
        }
        desk.complete(&first.dropoff).await;
        let list = desk.list(TODAY, &ada).await;
        desk.set(TODAY, vec![with_tasks(&list, &[])]).await.unwrap();
        assert_eq!(desk.task(&first.dropoff).await.courier, ada);
        assert_eq!(names(&first.dropoff).await, ["task:created", "task:assigned", "task:done"]);
        assert_eq!(names(&first.pickup).await, ["task:created", "task:assigned", "task:unassigned"]);
    }
}
