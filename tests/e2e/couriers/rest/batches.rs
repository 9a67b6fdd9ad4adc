//! Several tasks completed with one request, over both protocols.

use proto::{CompleteTasksRequest, task::State};
use serde_json::json;
use tonic::Code;

use super::{Scene, command, read};
use crate::{
    couriers::{Order, assert_violations},
    harness::{Platform, UNKNOWN_ID, assertions::json_ld},
};

on_both_databases! {
    async fn a_bad_member_fails_only_itself_over_rest(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let other = Order::on(&scene.shop, crate::couriers::TODAY).await;
        let (pickup, dropoff) = (&scene.order.pickup, &scene.order.dropoff);
        json_ld(&command(&scene.desk, dropoff, "failed", json!({ "reason": "LATE" })).await, 200);
        let iri = |task: &str| format!("/api/{task}");
        let (foreign, unknown) = (iri(&other.pickup), format!("/api/tasks/{UNKNOWN_ID}"));
        let body = json!({
            "tasks": ["nonsense", iri(dropoff), iri(pickup), foreign, unknown, iri(pickup)],
            "contactName": "Zoé",
        });

        let batch = json_ld(&scene.phone.put("/api/tasks/done", body).await, 200);

        let mut done = read(&scene.phone, pickup).await;
        done.as_object_mut().unwrap().remove("@context");
        assert_eq!(done["state"], "DONE");
        let expected = json!({
            "@context": "/api/contexts/TaskBatch",
            "@type": "TaskBatch",
            "success": [done],
            "failed": {
                "nonsense": "nonsense does not exist: a name is tasks/<id>, with a UUID in lower case",
                iri(dropoff): "the dropoff is FAILED since 2020-04-02T11:00:00+02:00, set by dispatch",
                foreign: format!("{} does not exist", other.pickup),
                unknown: format!("tasks/{UNKNOWN_ID} does not exist"),
            },
        });
        assert_eq!(batch, expected);
        assert_eq!(scene.board.history(pickup).await.last().unwrap().contact_name, "Zoé");
        let refused = scene.shop.put("/api/tasks/done", json!({ "tasks": [iri(pickup)] })).await;
        assert_eq!(refused.status, 403);
    }

    async fn a_batch_over_grpc_keeps_the_order_and_repeats_with_its_key(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let (pickup, dropoff) = (scene.order.pickup.clone(), scene.order.dropoff.clone());
        let request = |tasks: &[&String]| CompleteTasksRequest {
            tasks: tasks.iter().map(|task| (*task).clone()).collect(),
            idempotency: Some(proto::Idempotency {
                key: "a key".to_owned(),
                request_hash: vec![7; 32],
            }),
            ..Default::default()
        };

        // As if it had been interrupted after its first task.
        let first = scene.board.complete_tasks(request(&[&dropoff])).await.unwrap();
        scene.board.reopen_task(proto::ReopenTaskRequest { name: dropoff.clone(), ..Default::default() }).await.unwrap();
        let repeated = scene.board.complete_tasks(request(&[&dropoff, &pickup])).await.unwrap();

        let states: Vec<_> = repeated.tasks.iter().map(|task| (&task.name, task.state())).collect();
        assert_eq!(states, [(&dropoff, State::Done), (&pickup, State::Done)]);
        assert_eq!((&repeated.tasks[0], repeated.failed.len()), (&first.tasks[0], 0));
        // The first response; the task itself stays reopened.
        assert_eq!(scene.board.task(&dropoff).await.state(), State::Doing);
    }

    async fn a_task_that_left_the_list_of_the_courier_fails_alone(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let (pickup, dropoff) = (scene.order.pickup.clone(), scene.order.dropoff.clone());
        let single = proto::AssignTasksRequest {
            single: true,
            ..crate::couriers::assignment(&[&pickup], &scene.ada, "")
        };
        scene.board.assign_tasks(single).await.unwrap();

        let batch = CompleteTasksRequest {
            tasks: vec![pickup.clone(), dropoff.clone()],
            report: Some(proto::Report { on_behalf_of: scene.ada.clone(), ..Default::default() }),
            ..Default::default()
        };
        let batch = scene.board.complete_tasks(batch).await.unwrap();

        let done: Vec<_> = batch.tasks.iter().map(|task| (&task.name, task.state())).collect();
        assert_eq!(done, [(&dropoff, State::Done)]);
        let reason = "must be the courier whose list has the task".to_owned();
        assert_eq!(batch.failed, [(pickup, reason)].into());
    }

    async fn a_batch_has_1_to_100_tasks_and_its_texts_are_checked_before_any(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let named = |count: usize| vec![scene.order.pickup.clone(); count];
        let wrong = |tasks| CompleteTasksRequest {
            tasks,
            notes: "a".repeat(2001),
            contact_name: "a".repeat(201),
            ..Default::default()
        };

        for tasks in [Vec::new(), named(101)] {
            let refused = scene.board.complete_tasks(wrong(tasks)).await.unwrap_err();
            assert_violations(&refused, &["contact_name", "notes", "tasks"]);
        }
        let refused = scene.board.complete_tasks(wrong(named(1))).await.unwrap_err();
        assert_violations(&refused, &["contact_name", "notes"]);
        for (body, path) in [
            (json!({}), "tasks"),
            (json!({ "tasks": [] }), "tasks"),
            (json!({ "tasks": vec!["x"; 101] }), "tasks"),
            (json!({ "tasks": ["x", 5] }), "tasks[1]"),
        ] {
            let refused = scene.desk.put("/api/tasks/done", body).await;
            assert_eq!((refused.status, refused.violation_paths()), (400, vec![path]));
        }
        assert_eq!(scene.board.task(&scene.order.pickup).await.state(), State::Todo);
        let unknown = CompleteTasksRequest { tasks: named(1), ..Default::default() };
        let reader = platform.operator().await.create_client("", &["dispatch:read"]).await;
        let reader = crate::couriers::Desk::with(platform, &reader, "dispatch:read").await;
        assert_eq!(reader.complete_tasks(unknown).await.unwrap_err().code(), Code::PermissionDenied);
    }
}
