//! Creating, reading, cancelling and validating deliveries (specification, "Delivery").

use std::collections::HashMap;

use http::Method;
use proto::{
    AssertDeliveryRequest, CancelDeliveryRequest, Delivery, GetDeliveryRequest, Task, delivery,
    task,
};
use serde_json::{Value, json};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

use crate::harness::{
    PUBLIC_URL, Platform,
    samples::{self, ID, NOON, core_status, core_status_with, delivery_json, instant},
};

#[tokio::test]
async fn a_created_delivery_is_201_with_its_location_and_both_tasks() {
    let platform = Platform::start().await;
    platform.core.will_respond(samples::delivery());

    let body = json!({"dropoff": {"address": "24 Rue de la Paix", "before": "tomorrow 12:00"}});
    let reply = platform
        .client
        .post("/api/deliveries", body.to_string())
        .await;

    assert_eq!(reply.status, 201);
    assert_eq!(
        reply.header("location"),
        Some(format!("{PUBLIC_URL}/api/deliveries/{ID}").as_str())
    );
    assert_eq!(
        reply.header("content-type"),
        Some("application/ld+json; charset=utf-8")
    );
    assert_eq!(reply.json(), delivery_json());
}

#[tokio::test]
async fn all_violations_are_returned_with_the_clients_property_paths() {
    let platform = Platform::start().await;
    let violation = |field: &str| FieldViolation {
        field: field.to_owned(),
        description: format!("is wrong: {field}"),
        reason: "SOME_REASON".to_owned(),
        localized_message: None,
    };
    platform.core.will_fail(core_status_with(
        Code::InvalidArgument,
        "VALIDATION_FAILED",
        "3 violations",
        ErrorDetails::with_bad_request(vec![
            violation("pickup.address.place_name"),
            violation("dropoff.before"),
            violation("dropoff.address.lat_lng"),
        ]),
    ));

    let body = json!({
        "pickup": {"address": {"name": "x"}},
        "dropoff": {"doneBefore": "never", "address": {"geo": {"latitude": 91, "longitude": 0}}},
    });
    let reply = platform
        .client
        .post("/api/deliveries", body.to_string())
        .await;

    assert_eq!(reply.status, 400);
    let lines = "pickup.address.name: is wrong: pickup.address.place_name\n\
                 dropoff.doneBefore: is wrong: dropoff.before\n\
                 dropoff.address.geo: is wrong: dropoff.address.lat_lng";
    let violation = |path: &str, field: &str| {
        json!({
            "propertyPath": path,
            "message": format!("is wrong: {field}"),
            "code": "some_reason",
        })
    };
    assert_eq!(
        reply.error(),
        json!({
            "@context": "/api/contexts/ConstraintViolationList",
            "@type": "ConstraintViolationList",
            "hydra:title": "An error occurred",
            "hydra:description": lines,
            "type": format!("{PUBLIC_URL}/errors/validation_failed"),
            "title": "Invalid request",
            "status": 400,
            "detail": lines,
            "code": "validation_failed",
            "retryable": false,
            "violations": [
                violation("pickup.address.name", "pickup.address.place_name"),
                violation("dropoff.doneBefore", "dropoff.before"),
                violation("dropoff.address.geo", "dropoff.address.lat_lng"),
            ],
        })
    );
}

#[tokio::test]
async fn a_delivery_can_be_read() {
    let platform = Platform::start().await;
    platform.core.will_respond(Delivery {
        price: None,
        cancel_time: instant(NOON),
        tracking_url: "https://delivery.example/t/token".to_owned(),
        ..samples::delivery()
    });

    let reply = platform.client.get(&format!("/api/deliveries/{ID}")).await;

    let mut expected = delivery_json();
    expected["trackingUrl"] = json!("https://delivery.example/t/token");
    expected["price"] = Value::Null;
    expected["cancelledAt"] = json!("2020-04-02T12:00:00+02:00");
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json(), expected);
    assert_eq!(
        platform.core.received::<GetDeliveryRequest>().name,
        format!("deliveries/{ID}")
    );
}

/// A core of an earlier version sends no state.
#[tokio::test]
async fn a_delivery_has_the_word_of_its_state() {
    use delivery::State;
    let platform = Platform::start().await;
    let core_of_earlier_version = |done: [bool; 2], cancel_time| {
        let [pickup, dropoff] = done.map(|is_done| {
            let status = if is_done {
                task::Status::Done
            } else {
                task::Status::Todo
            };
            Some(Task {
                status: status.into(),
                state: task::State::Unspecified.into(),
                ..samples::task(task::Kind::Pickup)
            })
        });
        Delivery {
            state: State::Unspecified.into(),
            pickup,
            dropoff,
            cancel_time,
            ..samples::delivery()
        }
    };
    let sent = [
        (State::Created, "created"),
        (State::Assigned, "assigned"),
        (State::Started, "started"),
        (State::Picked, "picked"),
        (State::InTransit, "in_transit"),
        (State::Dropped, "dropped"),
        (State::Failed, "failed"),
        (State::Completed, "completed"),
        (State::Cancelled, "cancelled"),
    ];
    let sent = sent.map(|(state, word)| {
        let delivery = Delivery {
            state: state.into(),
            ..samples::delivery()
        };
        (delivery, word)
    });
    let derived = [
        (core_of_earlier_version([false, false], None), "created"),
        (core_of_earlier_version([true, false], None), "picked"),
        (core_of_earlier_version([false, true], None), "dropped"),
        (core_of_earlier_version([true, true], None), "completed"),
        (
            core_of_earlier_version([false, false], instant(NOON)),
            "cancelled",
        ),
    ];
    for (delivery, word) in sent.into_iter().chain(derived) {
        platform.core.will_respond(delivery);

        let reply = platform.client.get(&format!("/api/deliveries/{ID}")).await;

        assert_eq!(reply.json()["state"], word);
    }
}

#[tokio::test]
async fn a_delivery_without_a_task_from_core_is_an_internal_error() {
    let platform = Platform::start().await;
    platform.core.will_respond(Delivery {
        pickup: None,
        ..samples::delivery()
    });

    let reply = platform.client.get(&format!("/api/deliveries/{ID}")).await;

    assert_eq!(reply.status, 500);
    assert_eq!(reply.error()["detail"], "something went wrong on our side");
}

#[tokio::test]
async fn cancelling_a_delivery_is_204_and_409_if_a_task_is_done() {
    let platform = Platform::start().await;
    let path = format!("/api/deliveries/{ID}");

    platform.core.will_respond(samples::delivery());
    let reply = platform.client.method(Method::DELETE, &path).await;
    assert_eq!((reply.status.as_u16(), reply.text()), (204, ""));
    assert_eq!(
        platform.core.received::<CancelDeliveryRequest>(),
        CancelDeliveryRequest {
            name: format!("deliveries/{ID}"),
            ..CancelDeliveryRequest::default()
        }
    );

    platform.core.will_fail(core_status(
        Code::FailedPrecondition,
        "TASK_STATE",
        "a task of the delivery is done",
    ));
    let reply = platform.client.method(Method::DELETE, &path).await;
    assert_eq!(reply.status, 409);
    assert_eq!(reply.json()["code"], "task_state");
}

#[tokio::test]
async fn a_delivery_preview_has_no_id() {
    let platform = Platform::start().await;
    let mut preview = samples::delivery();
    let mut expected = delivery_json();
    preview.name.clear();
    expected
        .as_object_mut()
        .unwrap()
        .retain(|member, _| member != "@id" && member != "id");
    for (task, kind) in [
        (&mut preview.pickup, "pickup"),
        (&mut preview.dropoff, "dropoff"),
    ] {
        let task = task.as_mut().unwrap();
        task.name.clear();
        (task.create_time, task.update_time) = (None, None);
        task.address.as_mut().unwrap().name.clear();
        let shown = expected[kind].as_object_mut().unwrap();
        shown.retain(|member, _| member != "@id" && member != "id");
        shown["createdAt"] = Value::Null;
        shown["updatedAt"] = Value::Null;
        shown["address"].as_object_mut().unwrap().remove("@id");
    }
    platform.core.will_respond(preview);

    let body = json!({"dropoff": {"address": "24 Rue de la Paix", "weight": "heavy"}});
    let reply = platform
        .client
        .post("/api/deliveries/assert", body.to_string())
        .await;

    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("location"), None);
    assert_eq!(reply.json(), expected);
    let received = platform.core.received::<AssertDeliveryRequest>();
    assert_eq!(received.violations[0].field, "dropoff.weight");
}

#[tokio::test]
async fn a_taken_external_reference_is_409_and_names_the_existing_delivery() {
    let platform = Platform::start().await;
    let mut details = ErrorDetails::new();
    let existing = HashMap::from([("existing".to_owned(), format!("deliveries/{ID}"))]);
    details.set_error_info("EXTERNAL_REFERENCE_TAKEN", proto::ERROR_DOMAIN, existing);
    let taken = Status::with_error_details(Code::AlreadyExists, "is taken", details);
    platform.core.will_fail(taken);

    let reply = platform.client.post("/api/deliveries", "{}").await;

    assert_eq!(reply.status, 409);
    assert_eq!(reply.header("retry-after"), None);
    assert_eq!(
        reply.error(),
        json!({
            "@context": "/api/contexts/Error",
            "@type": "hydra:Error",
            "hydra:title": "An error occurred",
            "hydra:description": "is taken",
            "type": "https://delivery.example/errors/external_reference_taken",
            "title": "External reference taken",
            "status": 409,
            "detail": "is taken",
            "code": "external_reference_taken",
            "retryable": false,
            "existing": format!("/api/deliveries/{ID}"),
        })
    );
}
