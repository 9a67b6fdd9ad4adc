//! `PUT /api/tasks/{id}/assign` and `…/unassign`.

use serde_json::{Value, json};

use super::{Scene, assert_conflict, command, keyed, read};
use crate::{
    couriers::{TODAY, tasks},
    harness::{Platform, assertions::json_ld},
};

on_both_databases! {
    async fn the_whole_delivery_goes_to_a_courier_by_its_name_iri_or_display_name(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let ben = scene.board.courier("Ben").await;
        let (pickup, dropoff) = (&scene.order.pickup, &scene.order.dropoff);
        let both = tasks(&[&scene.order]);

        let unassigned = json_ld(&command(&scene.desk, dropoff, "unassign", Value::Null).await, 200);
        assert_eq!((&unassigned["isAssigned"], &unassigned["assignedTo"]), (&json!(false), &Value::Null));
        assert_eq!(unassigned, read(&scene.desk, dropoff).await);
        assert!(scene.board.tasks_of(TODAY, &scene.ada).await.is_empty());
        for (username, courier) in [("Ben", &ben), (&*scene.ada, &scene.ada), (&*format!("/api/{ben}"), &ben)] {
            let assigned = command(&scene.desk, pickup, "assign", json!({ "username": username })).await;
            let assigned = json_ld(&assigned, 200);
            assert_eq!((&assigned["isAssigned"], &assigned["assignedTo"]), (&json!(true), &json!(courier)));
            assert_eq!(assigned, read(&scene.desk, pickup).await);
            assert_eq!(scene.board.tasks_of(TODAY, courier).await, both);
        }
        // Again, and without a courier again: nothing changes.
        let before = scene.board.history(pickup).await;
        json_ld(&command(&scene.desk, pickup, "assign", json!({ "username": "Ben" })).await, 200);
        assert_eq!(scene.board.history(pickup).await, before);
    }

    async fn a_display_name_must_be_of_one_enabled_courier(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let (first, second) = (scene.board.courier("Ben").await, scene.board.courier("Ben").await);
        let assign = async |username: &str| {
            command(&scene.desk, &scene.order.pickup, "assign", json!({ "username": username })).await
        };

        let several = assign("Ben").await;
        let message = "several couriers have this name: write couriers/<id>";
        let violation = json!([{ "propertyPath": "username", "message": message, "code": "unknown_courier" }]);
        assert_eq!((several.status, &several.json["violations"]), (400, &violation));
        scene.board.disable(&first, true).await;
        assert_eq!(json_ld(&assign("Ben").await, 200)["assignedTo"], json!(second));
        assert_conflict(&assign(&first).await, "courier_disabled", "is disabled");
        assert_eq!(assign("couriers/1").await.status, 404);
    }

    async fn an_assignment_with_a_key_is_made_once(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let ben = scene.board.courier("Ben").await;
        let (task, body) = (&scene.order.pickup, json!({ "username": "Ben" }));

        let first = keyed(&scene.desk, task, "assign", &body).await;
        json_ld(&command(&scene.desk, task, "unassign", json!({})).await, 200);
        let repeated = keyed(&scene.desk, task, "assign", &body).await;

        assert_eq!(json_ld(&first, 200)["assignedTo"], json!(ben));
        // The task as it is now.
        assert_eq!(json_ld(&repeated, 200)["assignedTo"], Value::Null);
        assert_eq!(repeated.header("idempotent-replayed"), "true");
    }
}
