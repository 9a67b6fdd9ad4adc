//! What the commands refuse: states, callers and bodies.

use jiff::SignedDuration;
use serde_json::json;

use super::{Scene, assert_conflict, command, keyed, phone, read};
use crate::harness::{Mismatches, Platform, UNKNOWN_ID, assertions::json_ld};

/// The commands, each with a valid body.
fn commands() -> [(&'static str, serde_json::Value); 7] {
    [
        ("start", json!({})),
        ("done", json!({})),
        ("failed", json!({ "reason": "OTHER" })),
        ("reopen", json!({})),
        (
            "reschedule",
            json!({ "timeSlot": "2020-04-02 15:00-16:00" }),
        ),
        ("assign", json!({ "username": "Ada" })),
        ("unassign", json!({})),
    ]
}

on_both_databases! {
    /// "Any other move: 409, code `task_state`, naming the state, since when, and what set it."
    async fn a_state_that_permits_no_command_is_named(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let task = &scene.order.pickup;
        json_ld(&command(&scene.phone, task, "done", json!({})).await, 200);
        let message = "the pickup is DONE since 2020-04-02T11:00:00+02:00, set by courier";

        for (name, body) in [("start", json!({})), ("failed", json!({ "reason": "LATE" }))] {
            assert_conflict(&command(&scene.phone, task, name, body).await, "task_state", message);
        }
        let refused = keyed(&scene.desk, task, "start", &json!({})).await;
        assert_conflict(&refused, "task_state", message);
        for name in ["assign", "unassign"] {
            let refused = command(&scene.desk, task, name, json!({ "username": "Ada" })).await;
            assert_conflict(&refused, "task_state", "the task is DONE, and keeps its place");
        }
        let window = json!({ "timeSlot": "2020-04-02 15:00-16:00" });
        assert_conflict(&command(&scene.desk, task, "reschedule", window).await, "task_state", message);
        // With a key, such a refusal too is the first response.
        json_ld(&command(&scene.desk, task, "reopen", json!({})).await, 200);
        assert_conflict(&keyed(&scene.desk, task, "start", &json!({})).await, "task_state", message);

        json_ld(&command(&scene.phone, task, "done", json!({})).await, 200);
        platform.advance(SignedDuration::from_mins(11));
        let late = command(&scene.phone, task, "reopen", json!({})).await;
        assert_conflict(&late, "task_state", "set by courier");
        json_ld(&command(&scene.desk, &scene.order.dropoff, "done", json!({})).await, 200);
        let completed = command(&scene.desk, task, "reopen", json!({})).await;
        assert_conflict(&completed, "task_state", "the delivery is completed");
    }

    async fn a_task_of_another_courier_does_not_exist_and_shops_change_nothing(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let ben = scene.board.courier("Ben").await;
        let of_ben = phone(platform, &ben).await;
        let board = platform.dispatch_board().await;
        let unknown = format!("tasks/{UNKNOWN_ID}");
        let before = read(&scene.desk, &scene.order.pickup).await;
        let mut mismatches = Mismatches::default();

        for (name, body) in commands() {
            let task = &scene.order.pickup;
            let by_shop = command(&scene.shop, task, name, body.clone()).await;
            mismatches.check_error(format!("{name} by a shop"), &by_shop, 403);
            let is_for_dispatch = ["reschedule", "assign", "unassign"].contains(&name);
            let expected = if is_for_dispatch { 403 } else { 404 };
            let by_other = command(&of_ben, task, name, body.clone()).await;
            mismatches.check_error(format!("{name} by another courier"), &by_other, expected);
            if name != "done" {
                let by_board = command(&board, task, name, body.clone()).await;
                mismatches.check_error(format!("{name} with tasks:all"), &by_board, 403);
            }
            let absent = command(&scene.desk, &unknown, name, body).await;
            mismatches.check_error(format!("{name} of an unknown task"), &absent, 404);
        }

        let unseen = of_ben.get(&format!("/api/{}", scene.order.pickup)).await;
        mismatches.check_error("read by another courier", &unseen, 404);
        mismatches.assert_none();
        assert_eq!(read(&scene.desk, &scene.order.pickup).await, before);
    }

    async fn everything_wrong_in_a_body_is_reported_at_once(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let task = &scene.order.pickup;
        let long = "a".repeat(2001);
        let before = read(&scene.desk, task).await;
        let mut mismatches = Mismatches::default();

        for (name, body, paths) in [
            ("start", json!({ "occurredAt": "noon", "sentAt": 5 }), &["occurredAt", "sentAt"][..]),
            ("start", json!({ "onBehalfOf": 5 }), &["onBehalfOf"]),
            ("done", json!({ "notes": long, "contactName": [], "sentAt": "" }), &["notes", "contactName", "sentAt"]),
            ("failed", json!({ "reason": "not a code", "notes": 5 }), &["reason", "notes"]),
            ("failed", json!({}), &["reason"]),
            ("reopen", json!({ "occurredAt": {} }), &["occurredAt"]),
            ("reschedule", json!({ "both": "yes" }), &["after", "before", "both"]),
            ("reschedule", json!({ "after": "tomorrow", "before": "1999-01-01T00:00:00Z" }), &["after", "before"]),
            ("reschedule", json!({ "timeSlot": 5 }), &["timeSlot"]),
            ("reschedule", json!({ "timeSlot": "tomorrow" }), &["timeSlot"]),
            (
                "reschedule",
                json!({ "after": "2020-04-02T14:00:00Z", "before": "2020-04-02T13:00:00Z" }),
                &["after"],
            ),
            ("reschedule", json!({ "timeSlot": "2020-04-03 10:00-11:00" }), &["timeSlot"]),
            ("assign", json!({}), &["username"]),
            ("assign", json!({ "username": 5 }), &["username"]),
            ("assign", json!({ "username": "Zoé" }), &["username"]),
        ] {
            let response = command(&scene.desk, task, name, body.clone()).await;
            mismatches.check_violations(format!("{name} {body:.80}"), &response, paths);
        }

        mismatches.assert_none();
        assert_eq!(read(&scene.desk, task).await, before);
    }
}
