//! The history of a task, as shops and dispatch read it.

use delivery::Credentials;
use jiff::{SignedDuration, Timestamp};
use proto::{
    CancelDeliveryRequest, CompleteTaskRequest, FailTaskRequest, ListTaskEventsRequest,
    ListTaskEventsResponse, Report, RescheduleTaskRequest, StartTaskRequest, TaskEvent,
    deliveries_client::DeliveriesClient, iri, task_event::Actor,
};
use serde_json::{Value, json};
use tonic::Status;

use super::{Dispatch, Step, moved};
use crate::harness::{ApiClient, Platform, assertions::json_ld, draft, grpc, iri};

/// A time of the tests' day.
#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
pub(super) fn at(time: &str) -> Option<prost_types::Timestamp> {
    let instant: Timestamp = format!("2020-04-02T{time}+02:00").parse().unwrap();
    Some(prost_types::Timestamp {
        seconds: instant.as_second(),
        nanos: 0,
    })
}

/// Times of the tests' day, by the clock of a device.
#[expect(clippy::unnecessary_wraps, reason = "fields of messages are optional")]
pub(super) fn report(occurred: &str, sent: Option<&str>) -> Option<Report> {
    Some(Report {
        occurred_time: at(occurred),
        sent_time: sent.and_then(at),
        ..Report::default()
    })
}

pub(super) fn name(task: &Value) -> String {
    iri::name(iri(task)).to_owned()
}

async fn list(
    dispatch: &Dispatch,
    request: ListTaskEventsRequest,
) -> Result<ListTaskEventsResponse, Status> {
    let request = grpc::with_token(&dispatch.token, request);
    Ok(dispatch
        .tasks
        .clone()
        .list_task_events(request)
        .await?
        .into_inner())
}

/// Everything that dispatch sees.
pub(super) async fn history(dispatch: &Dispatch, task: &Value) -> Vec<TaskEvent> {
    let request = ListTaskEventsRequest {
        task: name(task),
        ..Default::default()
    };
    list(dispatch, request).await.unwrap().events
}

pub(super) async fn names(dispatch: &Dispatch, task: &Value) -> Vec<String> {
    let events = history(dispatch, task).await;
    events
        .into_iter()
        .map(|event| event.event["task:".len()..].to_owned())
        .collect()
}

/// The name of an API client.
async fn client_name(platform: &Platform, credentials: &Credentials, scope: &str) -> String {
    let client = platform.client_for(credentials, &[scope]).await;
    let me = client.get("/api/me").await.expect(200);
    iri::name(iri(&me)).to_owned()
}

pub(super) async fn complete(
    dispatch: &Dispatch,
    request: CompleteTaskRequest,
) -> Result<proto::Task, Status> {
    let request = grpc::with_token(&dispatch.token, request);
    Ok(dispatch
        .tasks
        .clone()
        .complete_task(request)
        .await?
        .into_inner())
}

async fn cancel(platform: &Platform, token: &str, request: CancelDeliveryRequest) {
    let (channel, _) = platform.connect(&["admin"]).await;
    let cancel = DeliveriesClient::new(channel)
        .cancel_delivery(grpc::with_token(token, request))
        .await;
    cancel.unwrap();
}

/// A task's history that has one page.
fn page(task: &Value, members: &Value) -> Value {
    let events = format!("{}/events", iri(task));
    json!({
        "@context": "/api/contexts/TaskEvent",
        "@id": events,
        "@type": "hydra:Collection",
        "hydra:member": members,
        "hydra:view": {
            "@id": events,
            "@type": "hydra:PartialCollectionView",
            "hydra:first": events,
        },
    })
}

async fn read(client: &ApiClient, task: &Value) -> Value {
    json_ld(&client.get(&format!("{}/events", iri(task))).await, 200)
}

/// A pickup that is started, fails, is rescheduled with its dropoff, done and reopened, a minute apart. The
/// devices' clocks are an hour ahead, right but for a time in the future, and right but for one before the creation.
async fn work(platform: &Platform, dispatch: &Dispatch, pickup: &Value) {
    let mut tasks = dispatch.tasks.clone();
    let next = || platform.advance(SignedDuration::from_mins(1));
    next();
    let start = StartTaskRequest {
        name: name(pickup),
        report: report("12:00:30", Some("12:01:00")),
        ..Default::default()
    };
    tasks
        .start_task(grpc::with_token(&dispatch.token, start))
        .await
        .unwrap();
    next();
    let fail = FailTaskRequest {
        name: name(pickup),
        reason: "CLOSED_STORE".to_owned(),
        notes: "  A dog in the yard\n".to_owned(),
        report: report("11:02:01", None),
        ..Default::default()
    };
    tasks
        .fail_task(grpc::with_token(&dispatch.token, fail))
        .await
        .unwrap();
    next();
    let reschedule = RescheduleTaskRequest {
        both: true,
        ..moved(pickup, 2)
    };
    dispatch.reschedule(reschedule).await.unwrap();
    next();
    let done = CompleteTaskRequest {
        name: name(pickup),
        notes: "By the back door".to_owned(),
        contact_name: "Ada Martin".to_owned(),
        report: report("10:59:59", Some("11:04:00")),
        ..Default::default()
    };
    complete(dispatch, done).await.unwrap();
    next();
    dispatch.take(Step::Reopen, pickup).await.unwrap();
}

/// The windows of a task before and after it is moved by two hours.
fn windows(task: &Value) -> [Option<prost_types::Timestamp>; 4] {
    let [before, after] = [0, 2].map(|hours| moved(task, hours));
    [after.after, after.before, before.after, before.before]
}

on_both_databases! {
    async fn dispatch_reads_who_did_what_when_to_a_task(platform: &Platform) {
        let client = platform.client().await;
        let credentials = platform.operator().await.create_client("", &["dispatch"]).await;
        let dispatch = Dispatch::with(platform, &credentials, "dispatch").await;
        let delivery = client.create_delivery(draft()).await;
        let pickup = &delivery["pickup"];

        work(platform, &dispatch, pickup).await;

        let api_client = client_name(platform, &credentials, "dispatch").await;
        let event = |event: &str, created: &str, occurred: &str| TaskEvent {
            event: format!("task:{event}"),
            create_time: at(created),
            occurred_time: at(occurred),
            actor: Actor::Dispatch.into(),
            api_client: api_client.clone(),
            ..Default::default()
        };
        let rescheduled = |task: &Value| {
            let [after, before, previous_after, previous_before] = windows(task);
            TaskEvent { after, before, previous_after, previous_before, ..event("rescheduled", "11:03:00", "11:03:00") }
        };
        let created = TaskEvent {
            actor: Actor::Unspecified.into(),
            api_client: String::new(),
            ..event("created", "11:00:00", "11:00:00")
        };
        let expected = vec![
            created.clone(),
            event("started", "11:01:00", "11:00:30"),
            TaskEvent {
                occurred_time_clamped: true,
                failure_reason: "CLOSED_STORE".to_owned(),
                notes: "A dog in the yard".to_owned(),
                ..event("failed", "11:02:00", "11:02:00")
            },
            rescheduled(pickup),
            TaskEvent {
                occurred_time_clamped: true,
                notes: "By the back door".to_owned(),
                contact_name: "Ada Martin".to_owned(),
                ..event("done", "11:04:00", "11:00:00")
            },
            event("reopened", "11:05:00", "11:05:00"),
        ];
        assert_eq!(history(&dispatch, pickup).await, expected);
        let dropoff = &delivery["dropoff"];
        assert_eq!(history(&dispatch, dropoff).await, [created, rescheduled(dropoff)]);
    }

    /// "Never notes, courier or desk."
    async fn a_shop_reads_the_history_of_its_task_without_notes_and_names_of_the_desk(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let pickup = &delivery["pickup"];

        work(platform, &dispatch, pickup).await;

        let event = |name: &str, created: &str, occurred: &str, data: Value| json!({
            "@type": "TaskEvent",
            "name": format!("task:{name}"),
            "data": data,
            "createdAt": format!("2020-04-02T{created}+02:00"),
            "occurredAt": format!("2020-04-02T{occurred}+02:00"),
        });
        let now = json_ld(&client.get(iri(pickup)).await, 200);
        let window = json!({
            "after": now["after"],
            "before": now["before"],
            "previousAfter": pickup["after"],
            "previousBefore": pickup["before"],
        });
        let expected = json!([
            event("created", "11:00:00", "11:00:00", json!({})),
            event("started", "11:01:00", "11:00:30", json!({})),
            event("failed", "11:02:00", "11:02:00", json!({"reason": "CLOSED_STORE"})),
            event("rescheduled", "11:03:00", "11:03:00", window),
            event("done", "11:04:00", "11:00:00", json!({"contactName": "Ada Martin"})),
            event("reopened", "11:05:00", "11:05:00", json!({})),
        ]);
        assert_eq!(read(&client, pickup).await, page(pickup, &expected));
        let mut expected = history(&dispatch, pickup).await;
        for event in &mut expected {
            event.notes.clear();
            event.set_actor(Actor::Unspecified);
            event.api_client.clear();
        }
        let program = platform.operator().await.create_client("", &["tasks:all"]).await;
        for (credentials, scope) in [(&platform.demo_client, "tasks"), (&program, "tasks:all")] {
            let reader = Dispatch::with(platform, credentials, scope).await;
            assert_eq!(history(&reader, pickup).await, expected, "{scope}");
        }
        let other = platform.new_store_client().await;
        assert_eq!(other.get(&format!("{}/events", iri(pickup))).await.status, 404);
    }

    /// Also of commands at the same instant, and by a core whose clock is behind.
    async fn events_are_in_the_order_of_the_changes(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let (pickup, dropoff) = (&delivery["pickup"], &delivery["dropoff"]);
        dispatch.take(Step::Start, pickup).await.unwrap();
        dispatch.take(Step::Complete, pickup).await.unwrap();
        platform.advance(SignedDuration::from_mins(-10));
        // With a token that is valid by then.
        let behind = Dispatch::authorized(platform).await;
        behind.take(Step::Reopen, pickup).await.unwrap();
        behind.take(Step::Fail("OTHER"), dropoff).await.unwrap();

        assert_eq!(names(&behind, pickup).await, ["created", "started", "done", "reopened"]);
        assert_eq!(names(&behind, dropoff).await, ["created", "failed"]);
        for (task, microseconds) in [(pickup, &[0, 1, 2, 3][..]), (dropoff, &[0, 4])] {
            let seconds = at("11:00:00").unwrap().seconds;
            let expected = microseconds.iter().map(|count| {
                Some(prost_types::Timestamp { seconds, nanos: count * 1000 })
            });
            let found = history(&behind, task).await.into_iter().map(|event| event.create_time);
            assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }

    async fn a_history_has_pages(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let pickup = &delivery["pickup"];
        work(platform, &dispatch, pickup).await;
        let whole = read(&client, pickup).await["hydra:member"].clone();
        let whole = whole.as_array().unwrap();

        for size in [1, 2, 3, 5] {
            let first = format!("{}/events?itemsPerPage={size}", iri(pickup));
            let (mut read, mut path) = (Vec::new(), first.clone());
            loop {
                let found = json_ld(&client.get(&path).await, 200);
                let members = found["hydra:member"].as_array().unwrap();
                assert!(members.len() <= size, "{size}");
                read.extend(members.clone());
                assert_eq!((&found["hydra:view"]["@id"], &found["hydra:view"]["hydra:first"]), (&json!(path), &json!(first)));
                match found["hydra:view"]["hydra:next"].as_str() {
                    Some(next) => next.clone_into(&mut path),
                    None => break,
                }
            }
            assert_eq!(&read, whole, "{size}");
        }
        let exactly_all = client.get(&format!("{}/events?itemsPerPage=6", iri(pickup))).await.expect(200);
        assert_eq!(exactly_all["hydra:view"].get("hydra:next"), None);
        let wrong = client.get(&format!("{}/events?itemsPerPage=0&cursor=x&page=2", iri(pickup))).await.expect(400);
        let violations = wrong["violations"].as_array().unwrap().iter();
        let paths: Vec<_> = violations.map(|violation| violation["propertyPath"].as_str().unwrap()).collect();
        assert_eq!(paths, ["page", "itemsPerPage", "cursor"]);
    }

    async fn each_task_of_a_cancelled_delivery_has_it_in_its_history(platform: &Platform) {
        let client = platform.client().await;
        let credentials = platform.operator().await.create_client("", &["dispatch"]).await;
        let dispatch = Dispatch::with(platform, &credentials, "dispatch").await;
        let by_shop = client.create_delivery(draft()).await;
        let by_dispatch = client.create_delivery(draft()).await;
        platform.advance(SignedDuration::from_mins(10));

        client.delete(iri(&by_shop)).await.expect(204);
        client.delete(iri(&by_shop)).await.expect(204);
        let request = CancelDeliveryRequest {
            name: name(&by_dispatch),
            report: report("11:03:00", None),
            ..Default::default()
        };
        cancel(platform, &dispatch.token, request).await;

        let shop = client_name(platform, &platform.demo_client, "tasks").await;
        let desk = client_name(platform, &credentials, "dispatch").await;
        for (delivery, actor, api_client, occurred) in [
            (&by_shop, Actor::Shop, shop, "11:10:00"),
            (&by_dispatch, Actor::Dispatch, desk, "11:03:00"),
        ] {
            for task in ["pickup", "dropoff"] {
                let expected = TaskEvent {
                    event: "task:cancelled".to_owned(),
                    create_time: at("11:10:00"),
                    occurred_time: at(occurred),
                    actor: actor.into(),
                    api_client: api_client.clone(),
                    ..Default::default()
                };
                assert_eq!(history(&dispatch, &delivery[task]).await[1..], [expected], "{task}");
            }
        }
    }
}
