//! `POST /api/incidents`, and the incidents of a task as couriers and dispatch read them.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Scene, phone, read};
use crate::harness::{Mismatches, Platform, UNKNOWN_ID, assertions::json_ld};

on_both_databases! {
    async fn a_phone_and_a_desk_report_an_incident_and_read_it(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let task = format!("/api/{}", scene.order.pickup);
        platform.advance(SignedDuration::from_mins(5));
        let report = json!({
            "task": task,
            "description": "The box is torn",
            "failureReasonCode": "DAMAGED",
            "metadata": [{ "shelf": "7" }],
            "occurredAt": "2020-04-02T11:02:00+02:00",
        });

        let reported = json_ld(&scene.phone.post("/api/incidents", report.clone()).await, 200);

        let iri = reported["@id"].as_str().unwrap();
        let expected = json!({
            "@context": "/api/contexts/Incident",
            "@id": iri,
            "@type": "Incident",
            "id": iri.strip_prefix("/api/incidents/"),
            "task": task,
            "description": "The box is torn",
            "failureReasonCode": "DAMAGED",
            "createdAt": "2020-04-02T11:05:00+02:00",
            "occurredAt": "2020-04-02T11:02:00+02:00",
            "closedAt": null,
            "metadata": { "0.shelf": "7" },
        });
        assert_eq!(reported, expected);
        // The same again opens no other.
        assert_eq!(json_ld(&scene.phone.post("/api/incidents", report).await, 200), reported);
        assert_eq!(read(&scene.phone, &scene.order.pickup).await["hasIncidents"], true);
        let path = format!("{task}/incidents");
        let mut listed = expected;
        listed.as_object_mut().unwrap().remove("@context");
        for client in [&scene.phone, &scene.desk] {
            assert_eq!(json_ld(&client.get(&path).await, 200)["hydra:member"], json!([listed]));
        }
        listed.as_object_mut().unwrap().remove("metadata");
        assert_eq!(json_ld(&scene.shop.get(&path).await, 200)["hydra:member"], json!([listed]));

        let by_desk = json!({ "task": task, "failureReasonCode": "LATE", "metadata": null });
        let first = scene.desk.post_with_key("/api/incidents", "k", &by_desk).await;
        let again = scene.desk.post_with_key("/api/incidents", "k", &by_desk).await;
        assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), ("", "true"));
        let first = json_ld(&first, 200);
        assert_eq!((&first["description"], first.get("metadata")), (&Value::Null, None));
        assert_eq!(json_ld(&again, 200), first);
    }

    async fn what_is_wrong_in_a_report_is_reported_at_once_and_a_foreign_task_does_not_exist(platform: &Platform) {
        let scene = Scene::set(platform).await;
        let ben = scene.board.courier("Ben").await;
        let of_ben = phone(platform, &ben).await;
        let task = format!("/api/{}", scene.order.pickup);
        let mut mismatches = Mismatches::default();

        for (body, paths) in [
            (json!({}), &["task", "description"][..]),
            (json!({ "task": 5, "description": [], "failureReasonCode": {} }), &["task", "description", "failureReasonCode"]),
            (json!({ "task": task }), &["description"]),
            (
                json!({ "task": task, "failureReasonCode": "not a code", "metadata": "x", "occurredAt": "now" }),
                &["failureReasonCode", "metadata", "occurredAt"],
            ),
            (
                json!({ "task": task, "failureReasonCode": "LATE", "metadata": { "a": {} , "b": [1] } }),
                &["metadata.a", "metadata.b"],
            ),
        ] {
            let response = scene.phone.post("/api/incidents", body.clone()).await;
            mismatches.check_violations(body, &response, paths);
        }
        let report = |task: &str| json!({ "task": task, "description": "Wet" });
        let unknown = format!("/api/tasks/{UNKNOWN_ID}");
        for (case, client, task, status) in [
            ("another courier", &of_ben, &task, 404),
            ("an unknown task", &scene.desk, &unknown, 404),
            ("a shop", &scene.shop, &task, 403),
        ] {
            let response = client.post("/api/incidents", report(task)).await;
            mismatches.check_error(case, &response, status);
        }
        let list = of_ben.get(&format!("{task}/incidents")).await;
        mismatches.check_error("listed by another courier", &list, 404);

        mismatches.assert_none();
        assert_eq!(read(&scene.desk, &scene.order.pickup).await["hasIncidents"], false);
    }
}
