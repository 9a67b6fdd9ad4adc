//! What each command does, for each caller that may send it.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Scene, command, in_state, keyed, read};
use crate::harness::{Platform, assertions::json_ld};

on_both_databases! {
    async fn shops_keep_their_form_of_a_task_and_couriers_and_dispatch_see_its_courier(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let task = &scene.order.pickup;

        let of_shop = read(&scene.shop, task).await;
        let mut embedded = scene.order.delivery["pickup"].clone();
        embedded["@context"] = json!("/api/contexts/Task");
        assert_eq!(of_shop, embedded);
        let mut expected = of_shop;
        expected["isAssigned"] = json!(true);
        expected["assignedTo"] = json!(scene.ada);
        expected["hasIncidents"] = json!(false);
        assert_eq!(read(&scene.phone, task).await, expected);
        assert_eq!(read(&scene.desk, task).await, expected);
    }

    async fn a_phone_and_a_desk_start_fail_complete_and_reopen_a_task(platform: &Platform) {
        let scene = Scene::set(platform).await;
        for (client, task) in [(&scene.phone, &scene.order.pickup), (&scene.desk, &scene.order.dropoff)] {
            let todo = read(client, task).await;
            let now = platform.now().to_zoned(jiff::tz::TimeZone::get("Europe/Paris").unwrap());
            let at = |minutes: i64| {
                let at = &now + SignedDuration::from_mins(minutes);
                at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
            };
            for (minute, name, body, state) in [
                (1, "start", Value::Null, "DOING"),
                (2, "done", json!({ "notes": "Left at the door", "contactName": "Zoé" }), "DONE"),
                (3, "reopen", json!({}), "DOING"),
                (4, "failed", json!({ "reason": "NOT_AT_HOME", "notes": "Nobody" }), "FAILED"),
            ] {
                platform.advance(SignedDuration::from_mins(1));
                let expected = in_state(&todo, state, &at(minute));

                let response = command(client, task, name, body.clone()).await;

                assert_eq!(json_ld(&response, 200), expected, "{name}");
                // The same target state again.
                let repeated = command(client, task, name, body).await;
                assert_eq!(json_ld(&repeated, 200), expected, "{name}");
            }
            let events = scene.board.history(task).await;
            let names: Vec<_> = events.iter().map(|event| &*event.event).collect();
            let expected = ["task:created", "task:assigned", "task:started", "task:done", "task:reopened", "task:failed"];
            assert_eq!(names, expected);
            let (done, failed) = (&events[3], &events[5]);
            assert_eq!((&*done.notes, &*done.contact_name), ("Left at the door", "Zoé"));
            assert_eq!((&*failed.notes, &*failed.failure_reason), ("Nobody", "NOT_AT_HOME"));
        }
    }

    async fn a_desk_reports_for_a_courier_whose_list_has_the_task(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let ben = scene.board.courier("Ben").await;
        let task = &scene.order.pickup;
        let before = read(&scene.desk, task).await;
        let wrong = json!({ "onBehalfOf": ben, "occurredAt": "noon" });
        let wrong = command(&scene.desk, task, "done", wrong).await;
        assert_eq!((wrong.status, wrong.violation_paths()), (400, vec!["occurredAt", "onBehalfOf"]));
        let not_a_desk = command(&scene.phone, task, "done", json!({ "onBehalfOf": scene.ada })).await;
        assert_eq!(not_a_desk.status, 403);
        assert_eq!(read(&scene.desk, task).await, before);

        let of_ada = json!({ "onBehalfOf": format!("/api/{}", scene.ada) });
        json_ld(&command(&scene.desk, task, "done", of_ada).await, 200);

        let history = scene.board.history(task).await;
        let done = history.last().unwrap();
        assert_eq!((&*done.event, &done.courier), ("task:done", &scene.ada));
    }

    async fn a_desk_gives_a_failed_task_a_new_window(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let (pickup, dropoff) = (&scene.order.pickup, &scene.order.dropoff);
        json_ld(&command(&scene.phone, pickup, "failed", json!({ "reason": "LATE" })).await, 200);
        platform.advance(SignedDuration::from_mins(1));

        let window = json!({ "after": "2020-04-02T15:00:00+02:00", "before": "2020-04-02T14:00:00Z" });
        let moved = json_ld(&command(&scene.desk, pickup, "reschedule", window).await, 200);
        let slot = json!({ "timeSlot": "2020-04-03 18:00-19:00", "both": true });
        let both = json_ld(&command(&scene.desk, dropoff, "reschedule", slot).await, 200);

        let times = |task: &Value| (task["state"].clone(), task["after"].clone(), task["before"].clone());
        let todo = |after: &str, before: &str| (json!("TODO"), json!(after), json!(before));
        assert_eq!(times(&moved), todo("2020-04-02T15:00:00+02:00", "2020-04-02T16:00:00+02:00"));
        assert_eq!((&moved["isAssigned"], &moved["assignedTo"]), (&json!(false), &Value::Null));
        assert_eq!(times(&both), todo("2020-04-03T18:00:00+02:00", "2020-04-03T19:00:00+02:00"));
        let pickup = read(&scene.desk, pickup).await;
        assert_eq!(times(&pickup), todo("2020-04-03T15:00:00+02:00", "2020-04-03T16:00:00+02:00"));
    }

    /// "State follows arrival; display follows what occurred; both are in the history."
    async fn what_a_phone_did_offline_is_in_the_history_with_its_time(platform: &Platform) {
        let scene = Scene::set(platform).await;
        platform.advance(SignedDuration::from_mins(30));
        // The clock of the phone is 10 minutes fast.
        let report = json!({ "occurredAt": "2020-04-02T11:30:00+02:00", "sentAt": "2020-04-02T11:40:00+02:00" });

        json_ld(&command(&scene.phone, &scene.order.pickup, "done", report).await, 200);

        let path = format!("/api/{}/events", scene.order.pickup);
        let events = json_ld(&scene.shop.get(&path).await, 200)["hydra:member"].clone();
        let done = json!({
            "@type": "TaskEvent",
            "name": "task:done",
            "data": {},
            "createdAt": "2020-04-02T11:30:00+02:00",
            "occurredAt": "2020-04-02T11:20:00+02:00",
        });
        assert_eq!(events.as_array().unwrap().last(), Some(&done));
        assert_eq!(json_ld(&scene.phone.get(&path).await, 200)["hydra:member"], events);
    }

    async fn a_command_with_a_key_gets_its_first_response_whatever_happened_since(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let (task, body) = (&scene.order.pickup, json!({}));

        let first = keyed(&scene.phone, task, "start", &body).await;
        json_ld(&command(&scene.desk, task, "done", body.clone()).await, 200);
        let repeated = keyed(&scene.phone, task, "start", &body).await;

        assert_eq!((first.header("idempotent-replayed"), repeated.header("idempotent-replayed")), ("", "true"));
        assert_eq!(json_ld(&repeated, 200), json_ld(&first, 200));
        assert_eq!(command(&scene.phone, task, "start", body).await.status, 409);
        let other = json!({ "occurredAt": "2020-04-02T11:00:00+02:00" });
        assert_eq!(keyed(&scene.phone, task, "start", &other).await.status, 422);
    }
}
