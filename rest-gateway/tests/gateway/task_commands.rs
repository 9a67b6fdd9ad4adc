//! The commands on tasks: what core gets, and what their callers see.

use std::collections::HashMap;

use http::Method;
use proto::{
    CompleteTaskRequest, CompleteTasksRequest, CompleteTasksResponse, GetTaskRequest, Incident,
    ReportIncidentRequest, RescheduleTaskRequest, Task, task,
};
use serde_json::{Value, json};
use tonic::Code;

use crate::harness::{
    Platform, Reply,
    samples::{ID, NOON, core_status, instant, task, task_json},
};

async fn put(platform: &Platform, path: &str, body: &Value) -> Reply {
    let request = platform.client.request(Method::PUT, path);
    let request = request.header("content-type", "application/ld+json");
    platform.client.send(request, body.to_string()).await
}

/// Core adds its own, so that the response has all.
#[tokio::test]
async fn what_is_wrong_in_a_body_is_sent_to_core() {
    for (body, expected) in [
        ("{", &[("", "INVALID_JSON")][..]),
        ("[]", &[("", "WRONG_TYPE")]),
        (
            r#"{"notes": 5, "contactName": [], "occurredAt": "noon", "sentAt": 1}"#,
            &[
                ("occurredAt", "INVALID_INSTANT"),
                ("sentAt", "WRONG_TYPE"),
                ("notes", "WRONG_TYPE"),
                ("contact_name", "WRONG_TYPE"),
            ],
        ),
    ] {
        let platform = Platform::start().await;
        let refused = core_status(Code::NotFound, "NOT_FOUND", "there is no such task");
        platform.core.will_fail(refused);

        let request = platform
            .client
            .request(Method::PUT, &format!("/api/tasks/{ID}/done"))
            .header("content-type", "application/ld+json");
        let reply = platform.client.send(request, body).await;

        assert_eq!(reply.status, 404, "{body}");
        let sent = platform.core.received::<CompleteTaskRequest>().violations;
        let sent: Vec<_> = sent
            .iter()
            .map(|found| (&*found.field, &*found.reason))
            .collect();
        assert_eq!(sent, expected, "{body}");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_is_not_sent() {
    let platform = Platform::start().await;

    let request = platform
        .client
        .request(Method::PUT, &format!("/api/tasks/{ID}/done"))
        .header("content-type", "text/plain");
    let reply = platform.client.send(request, "{}").await;

    assert_eq!(reply.status, 415);
    assert!(!platform.core.has_unread_call());
}

/// "They may see courier fields; shops' tasks keep today's form."
#[tokio::test]
async fn only_a_caller_that_sees_couriers_gets_the_courier_of_a_task() {
    let platform = Platform::start().await;
    let assigned = || Task {
        courier: format!("couriers/{ID}"),
        has_incidents: true,
        ..task(task::Kind::Pickup)
    };
    let mut expected = task_json("PICKUP");
    expected["@context"] = json!("/api/contexts/Task");
    let path = format!("/api/tasks/{ID}");

    platform.core.will_respond(assigned());
    assert_eq!(platform.client.get(&path).await.json(), expected);
    for (sent, courier) in [
        (assigned(), json!(format!("couriers/{ID}"))),
        (
            Task {
                courier: String::new(),
                ..assigned()
            },
            Value::Null,
        ),
    ] {
        platform
            .core
            .will_respond_marked(proto::SEES_COURIERS, sent);
        expected["isAssigned"] = json!(!courier.is_null());
        expected["assignedTo"] = courier;
        expected["hasIncidents"] = json!(true);
        assert_eq!(platform.client.get(&path).await.json(), expected);
    }
}

#[tokio::test]
async fn a_window_is_read_as_instants() {
    let platform = Platform::start().await;
    platform.core.will_respond(task(task::Kind::Pickup));

    let window = json!({
        "after": "2020-04-02T12:00:00.123+02:00",
        "before": "2020-04-02T10:15:00.123Z",
        "timeSlot": null,
        "both": true,
        "occurredAt": "2020-04-02T11:59:00.123+02:00",
    });
    let reply = put(&platform, &format!("/api/tasks/{ID}/reschedule"), &window).await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        platform.core.received::<RescheduleTaskRequest>(),
        RescheduleTaskRequest {
            name: format!("tasks/{ID}"),
            after: instant(NOON),
            before: instant(NOON + 900),
            both: true,
            report: Some(proto::Report {
                occurred_time: instant(NOON - 60),
                sent_time: None,
                ..proto::Report::default()
            }),
            ..RescheduleTaskRequest::default()
        }
    );
}

#[tokio::test]
async fn the_members_of_a_batch_fail_under_the_names_that_the_request_has() {
    let platform = Platform::start().await;
    platform.core.will_respond(CompleteTasksResponse {
        tasks: vec![task(task::Kind::Pickup)],
        failed: [
            ("tasks/1".to_owned(), "no such task".to_owned()),
            ("nonsense".to_owned(), "no name".to_owned()),
        ]
        .into(),
    });

    let body = json!({"tasks": [format!("/api/tasks/{ID}"), "/api/tasks/1", "nonsense"]});
    let reply = put(&platform, "/api/tasks/done", &body).await;

    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/TaskBatch",
            "@type": "TaskBatch",
            "success": [task_json("PICKUP")],
            "failed": {"/api/tasks/1": "no such task", "nonsense": "no name"},
        })
    );
    let sent = platform.core.received::<CompleteTasksRequest>();
    let expected = [
        format!("tasks/{ID}"),
        "tasks/1".to_owned(),
        "nonsense".to_owned(),
    ];
    assert_eq!(sent.tasks, expected);
}

/// "`metadata`: absent or an array", as the couriers' app sends it, or an object.
#[tokio::test]
async fn metadata_of_an_incident_is_an_object_or_an_array() {
    for (metadata, expected) in [
        (Value::Null, &[][..]),
        (json!([]), &[]),
        (
            json!({"a": "x", "b": 1, "c": null}),
            &[("a", "x"), ("b", "1")],
        ),
        (
            json!(["x", true, {"a": "y"}]),
            &[("0", "x"), ("1", "true"), ("2.a", "y")],
        ),
    ] {
        let platform = Platform::start().await;
        platform.core.will_respond(Incident {
            name: format!("incidents/{ID}"),
            task: format!("tasks/{ID}"),
            failure_reason: "DAMAGED".to_owned(),
            create_time: instant(NOON),
            occurred_time: instant(NOON),
            ..Incident::default()
        });
        platform.core.will_respond(task(task::Kind::Pickup));

        let body = json!({
            "task": format!("/api/tasks/{ID}"),
            "failureReasonCode": "DAMAGED",
            "metadata": metadata,
        });
        let request = platform.client.request(Method::POST, "/api/incidents");
        let request = request.header("content-type", "application/ld+json");
        let reply = platform.client.send(request, body.to_string()).await;

        assert_eq!(
            reply.json(),
            json!({
                "@context": "/api/contexts/Incident",
                "@id": format!("/api/incidents/{ID}"),
                "@type": "Incident",
                "id": ID,
                "task": format!("/api/tasks/{ID}"),
                "description": null,
                "failureReasonCode": "DAMAGED",
                "createdAt": "2020-04-02T12:00:00+02:00",
                "occurredAt": "2020-04-02T12:00:00+02:00",
                "closedAt": null,
            })
        );
        let sent = platform.core.received::<ReportIncidentRequest>();
        let expected: HashMap<_, _> = expected
            .iter()
            .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
            .collect();
        assert_eq!(sent.metadata, expected);
        assert!(sent.violations.is_empty());
        let read = platform.core.received::<GetTaskRequest>();
        assert_eq!(read.name, format!("tasks/{ID}"));
    }
}
