//! `GET /api/tasks/{id}` (specification, "Task"), its history, and `PUT /api/tasks/{id}/done`.

use http::Method;
use proto::{
    CompleteTaskRequest, Delivery, GetTaskRequest, Incident, ListDeliveriesResponse,
    ListIncidentsRequest, ListIncidentsResponse, ListTaskEventsRequest, ListTaskEventsResponse,
    Task, TaskEvent, task,
};
use serde_json::{Value, json};

use crate::harness::{
    Platform,
    samples::{ID, NOON, delivery, instant, task, task_json},
};

#[tokio::test]
async fn a_task_has_all_its_members() {
    let platform = Platform::start().await;
    platform.core.will_respond(task(task::Kind::Dropoff));

    let reply = platform.client.get(&format!("/api/tasks/{ID}")).await;

    let mut expected = task_json("DROPOFF");
    expected["@context"] = json!("/api/contexts/Task");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), expected);
    assert_eq!(
        platform.core.received::<GetTaskRequest>().name,
        format!("tasks/{ID}")
    );
}

/// `status` has two values. A core of an earlier version sends no state.
#[tokio::test]
async fn a_task_has_the_word_of_its_state() {
    use task::{State, Status};
    let platform = Platform::start().await;
    for (status, sent, cancel_time, word) in [
        (Status::Todo, State::Todo, None, "TODO"),
        (Status::Todo, State::Doing, None, "DOING"),
        (Status::Done, State::Done, None, "DONE"),
        (Status::Todo, State::Failed, None, "FAILED"),
        (Status::Todo, State::Cancelled, instant(NOON), "CANCELLED"),
        (Status::Todo, State::Unspecified, None, "TODO"),
        (Status::Done, State::Unspecified, None, "DONE"),
        (Status::Todo, State::Unspecified, instant(NOON), "CANCELLED"),
    ] {
        platform.core.will_respond(Task {
            status: status.into(),
            state: sent.into(),
            cancel_time,
            ..task(task::Kind::Pickup)
        });

        let shown = platform
            .client
            .get(&format!("/api/tasks/{ID}"))
            .await
            .json();

        let expected = status.as_str_name().trim_start_matches("STATUS_");
        assert_eq!(shown["status"], expected, "{word}");
        assert_eq!(shown["state"], word, "{sent:?}");
    }
}

/// "Core says so for the caller, the gateway obeys."
#[tokio::test]
async fn a_caller_may_see_the_state_as_the_status() {
    let platform = Platform::start().await;
    let failed = |kind| Task {
        state: task::State::Failed.into(),
        ..task(kind)
    };
    let delivery = || Delivery {
        dropoff: Some(failed(task::Kind::Dropoff)),
        ..delivery()
    };
    let (task, of_delivery) = (format!("/api/tasks/{ID}"), format!("/api/deliveries/{ID}"));
    let deliveries = || ListDeliveriesResponse {
        deliveries: vec![delivery()],
        ..ListDeliveriesResponse::default()
    };
    let core = &platform.core;
    let full = proto::FULL_TASK_STATUS;

    core.will_respond_marked(full, failed(task::Kind::Pickup));
    core.will_respond_marked(full, failed(task::Kind::Pickup));
    core.will_respond_marked(full, delivery());
    core.will_respond_marked(full, deliveries());
    core.will_respond(delivery());
    let read = platform.client.get(&task).await.json();
    let done = platform
        .client
        .request(Method::PUT, &format!("{task}/done"));
    let done = platform.client.send(done, "").await.json();
    let shown = platform.client.get(&of_delivery).await.json();
    let listed = platform.client.get("/api/deliveries").await.json();
    let specified = platform.client.get(&of_delivery).await.json();

    assert_eq!(
        (&read["status"], &done["status"]),
        (&json!("FAILED"), &json!("FAILED"))
    );
    let member = &listed["hydra:member"][0];
    for (delivery, status) in [(&shown, "FAILED"), (member, "FAILED"), (&specified, "TODO")] {
        let statuses = (
            &delivery["pickup"]["status"],
            &delivery["dropoff"]["status"],
        );
        assert_eq!(statuses, (&json!("TODO"), &json!(status)));
    }
}

#[tokio::test]
async fn the_reasons_of_a_failure_are_described_in_the_clients_language() {
    let platform = Platform::start().await;
    let path = format!("/api/tasks/{ID}/failure_reasons");
    for (accepted, language, not_at_home) in [
        ("fr-CA, en;q=0.5", "fr", "Le destinataire était absent"),
        ("pl", "en", "The recipient was not at home"),
    ] {
        platform.core.will_respond(task(task::Kind::Pickup));

        let request = platform.client.request(Method::GET, &path);
        let request = request.header("accept-language", accepted);
        let reply = platform.client.send(request, "").await;

        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-language"), Some(language));
        let mut collection = reply.json();
        let members = collection["hydra:member"].take();
        let expected = json!({
            "@context": "/api/contexts/FailureReason",
            "@id": path,
            "@type": "hydra:Collection",
            "hydra:member": null,
            "hydra:totalItems": 21,
            "hydra:view": {"@id": path, "@type": "hydra:PartialCollectionView"},
        });
        assert_eq!(collection, expected);
        let expected = json!({
            "@type": "FailureReason",
            "code": "NOT_AT_HOME",
            "description": not_at_home,
        });
        assert_eq!(members[3], expected);
        let name = platform.core.received::<GetTaskRequest>().name;
        assert_eq!(name, format!("tasks/{ID}"));
    }
}

/// Also of an event that this gateway does not know, of a newer core.
#[tokio::test]
async fn a_page_of_the_history_of_a_task_has_what_is_known_of_each_event() {
    let platform = Platform::start().await;
    let event = |event: &str| TaskEvent {
        event: event.to_owned(),
        create_time: instant(NOON),
        occurred_time: instant(NOON - 60),
        notes: "for dispatch".to_owned(),
        ..TaskEvent::default()
    };
    platform.core.will_respond(ListTaskEventsResponse {
        events: vec![
            TaskEvent {
                failure_reason: "REFUSED".to_owned(),
                ..event("task:failed")
            },
            TaskEvent {
                after: instant(NOON),
                before: instant(NOON + 900),
                previous_after: instant(NOON - 900),
                previous_before: instant(NOON),
                ..event("task:rescheduled")
            },
            TaskEvent {
                contact_name: "Zoé".to_owned(),
                ..event("task:teleported")
            },
        ],
        next_page_token: "second".to_owned(),
        time_zone: "Europe/Paris".to_owned(),
    });
    let path = format!("/api/tasks/{ID}/events");

    let page = format!("{path}?itemsPerPage=3");
    let reply = platform.client.get(&format!("{page}&cursor=first")).await;

    let event = |name: &str, data: Value| {
        json!({
            "@type": "TaskEvent",
            "name": name,
            "data": data,
            "createdAt": "2020-04-02T12:00:00+02:00",
            "occurredAt": "2020-04-02T11:59:00+02:00",
        })
    };
    let windows = json!({
        "after": "2020-04-02T12:00:00+02:00",
        "before": "2020-04-02T12:15:00+02:00",
        "previousAfter": "2020-04-02T11:45:00+02:00",
        "previousBefore": "2020-04-02T12:00:00+02:00",
    });
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/TaskEvent",
            "@id": path,
            "@type": "hydra:Collection",
            "hydra:member": [
                event("task:failed", json!({"reason": "REFUSED"})),
                event("task:rescheduled", windows),
                event("task:teleported", json!({"contactName": "Zoé"})),
            ],
            "hydra:view": {
                "@id": format!("{page}&cursor=first"),
                "@type": "hydra:PartialCollectionView",
                "hydra:first": page,
                "hydra:next": format!("{page}&cursor=second"),
            },
        })
    );
    assert_eq!(
        platform.core.received::<ListTaskEventsRequest>(),
        ListTaskEventsRequest {
            task: format!("tasks/{ID}"),
            page_size: Some(3),
            page_token: "first".to_owned(),
            violations: Vec::new(),
        }
    );
}

#[tokio::test]
async fn a_page_of_the_incidents_of_a_task_has_what_went_wrong_and_when() {
    let platform = Platform::start().await;
    platform.core.will_respond(ListIncidentsResponse {
        incidents: vec![
            Incident {
                name: format!("incidents/{ID}"),
                task: format!("tasks/{ID}"),
                description: "The parcel is wet".to_owned(),
                failure_reason: "DAMAGED".to_owned(),
                create_time: instant(NOON),
                occurred_time: instant(NOON - 60),
                closed_with: "for dispatch".to_owned(),
                ..Incident::default()
            },
            Incident {
                name: format!("incidents/{ID}"),
                task: format!("tasks/{ID}"),
                metadata: [("shelf".to_owned(), "7".to_owned())].into(),
                failure_reason: "TRAFFIC".to_owned(),
                create_time: instant(NOON - 60),
                occurred_time: instant(NOON - 60),
                close_time: instant(NOON),
                ..Incident::default()
            },
        ],
        next_page_token: "second".to_owned(),
        time_zone: "Europe/Paris".to_owned(),
    });
    let path = format!("/api/tasks/{ID}/incidents");

    let page = format!("{path}?itemsPerPage=2");
    let reply = platform.client.get(&format!("{page}&cursor=first")).await;

    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "@context": "/api/contexts/Incident",
            "@id": path,
            "@type": "hydra:Collection",
            "hydra:member": [
                {
                    "@id": format!("/api/incidents/{ID}"),
                    "@type": "Incident",
                    "id": ID,
                    "task": format!("/api/tasks/{ID}"),
                    "description": "The parcel is wet",
                    "failureReasonCode": "DAMAGED",
                    "createdAt": "2020-04-02T12:00:00+02:00",
                    "occurredAt": "2020-04-02T11:59:00+02:00",
                    "closedAt": null,
                },
                {
                    "@id": format!("/api/incidents/{ID}"),
                    "@type": "Incident",
                    "id": ID,
                    "task": format!("/api/tasks/{ID}"),
                    "metadata": {"shelf": "7"},
                    "description": null,
                    "failureReasonCode": "TRAFFIC",
                    "createdAt": "2020-04-02T11:59:00+02:00",
                    "occurredAt": "2020-04-02T11:59:00+02:00",
                    "closedAt": "2020-04-02T12:00:00+02:00",
                },
            ],
            "hydra:view": {
                "@id": format!("{page}&cursor=first"),
                "@type": "hydra:PartialCollectionView",
                "hydra:first": page,
                "hydra:next": format!("{page}&cursor=second"),
            },
        })
    );
    assert_eq!(
        platform.core.received::<ListIncidentsRequest>(),
        ListIncidentsRequest {
            task: format!("tasks/{ID}"),
            open_only: false,
            page_size: Some(2),
            page_token: "first".to_owned(),
            violations: Vec::new(),
        }
    );
}

#[tokio::test]
async fn a_completed_task_is_done() {
    for (content_type, body) in [
        (Some("application/ld+json"), "{}"),
        (Some("application/json"), "{\"unknown\": 1}"),
        (Some("text/plain"), ""),
        (None, ""),
    ] {
        let platform = Platform::start().await;
        platform.core.will_respond(Task {
            status: task::Status::Done.into(),
            state: task::State::Done.into(),
            complete_time: instant(NOON),
            ..task(task::Kind::Pickup)
        });

        let mut request = platform
            .client
            .request(Method::PUT, &format!("/api/tasks/{ID}/done"));
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let reply = platform.client.send(request, body).await;

        let mut expected = task_json("PICKUP");
        expected["@context"] = json!("/api/contexts/Task");
        expected["status"] = json!("DONE");
        expected["state"] = json!("DONE");
        assert_eq!(reply.status, 200, "{body}");
        assert_eq!(reply.json(), expected);
        assert_eq!(
            platform.core.received::<CompleteTaskRequest>().name,
            format!("tasks/{ID}")
        );
    }
}
