//! A task's life over gRPC: started, completed, failed, reopened, rescheduled.

mod failure_reasons;
mod history;
mod listing;
mod repeating;
mod reports;
mod states;

use delivery::Credentials;
use jiff::SignedDuration;
use proto::{
    CompleteTaskRequest, FailTaskRequest, ReopenTaskRequest, RescheduleTaskRequest,
    StartTaskRequest, Task, iri, task::State, tasks_client::TasksClient,
};
use serde_json::Value;
use tonic::{Code, Status, transport::Channel};

use crate::harness::{ApiClient, Platform, UNKNOWN_ID, assertions::json_ld, draft, grpc, iri};

/// How many deliveries have a task completed and failed at once.
const RACES: usize = 20;

#[derive(Clone)]
pub(crate) struct Dispatch {
    tasks: TasksClient<Channel>,
    token: String,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start,
    Complete,
    Fail(&'static str),
    Reopen,
    /// By hours.
    Reschedule(i64),
}

/// The task's window, later by so many hours.
fn moved(task: &Value, hours: i64) -> RescheduleTaskRequest {
    let time = |member: &str| {
        let time: jiff::Timestamp = task[member].as_str().unwrap().parse().unwrap();
        Some(prost_types::Timestamp {
            seconds: (time + SignedDuration::from_hours(hours)).as_second(),
            nanos: 0,
        })
    };
    RescheduleTaskRequest {
        name: iri::name(iri(task)).to_owned(),
        after: time("after"),
        before: time("before"),
        ..Default::default()
    }
}

impl Dispatch {
    pub(crate) async fn authorized(platform: &Platform) -> Self {
        let operator = platform.operator().await;
        let credentials = operator.create_client("", &["dispatch"]).await;
        Self::with(platform, &credentials, "dispatch").await
    }

    async fn with(platform: &Platform, credentials: &Credentials, scope: &str) -> Self {
        let (channel, token) = grpc::connect(&platform.core_url, credentials, &[scope]).await;
        Self {
            tasks: TasksClient::new(channel),
            token,
        }
    }

    pub(crate) async fn reschedule(&self, request: RescheduleTaskRequest) -> Result<Task, Status> {
        let mut tasks = self.tasks.clone();
        let request = grpc::with_token(&self.token, request);
        Ok(tasks.reschedule_task(request).await?.into_inner())
    }

    async fn take(&self, step: Step, task: &Value) -> Result<Task, Status> {
        let name = iri::name(iri(task)).to_owned();
        let (mut tasks, token) = (self.tasks.clone(), &*self.token);
        let changed = match step {
            Step::Start => {
                let request = grpc::with_token(
                    token,
                    StartTaskRequest {
                        name,
                        ..Default::default()
                    },
                );
                tasks.start_task(request).await
            }
            Step::Complete => {
                let request = grpc::with_token(
                    token,
                    CompleteTaskRequest {
                        name,
                        ..Default::default()
                    },
                );
                tasks.complete_task(request).await
            }
            Step::Fail(reason) => {
                let reason = reason.to_owned();
                let request = grpc::with_token(
                    token,
                    FailTaskRequest {
                        name,
                        reason,
                        ..Default::default()
                    },
                );
                tasks.fail_task(request).await
            }
            Step::Reopen => {
                let request = grpc::with_token(
                    token,
                    ReopenTaskRequest {
                        name,
                        ..Default::default()
                    },
                );
                tasks.reopen_task(request).await
            }
            Step::Reschedule(hours) => {
                let request = grpc::with_token(token, moved(task, hours));
                tasks.reschedule_task(request).await
            }
        };
        Ok(changed?.into_inner())
    }
}

/// The names of the store's events but `delivery.created`, in order, once there are so many.
pub(crate) async fn events(client: &ApiClient, count: usize) -> Vec<String> {
    let log = client.wait_until("/api/events?after=0", |log| {
        let members = log["hydra:member"].as_array().unwrap();
        let names = members.iter().map(|event| event["event"].as_str().unwrap());
        let changes = names.filter(|name| *name != "delivery.created");
        let changes: Vec<_> = changes
            .map(|name| name["delivery.".len()..].to_owned())
            .collect();
        (changes.len() >= count).then_some(changes)
    });
    log.await
}

on_both_databases! {
    async fn each_step_of_a_delivery_changes_its_state_and_is_an_event(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        let mut expected_events = Vec::new();

        for (task, step, state, status, event) in [
            ("pickup", Step::Start, State::Doing, "TODO", Some("started")),
            ("pickup", Step::Start, State::Doing, "TODO", None),
            ("pickup", Step::Complete, State::Done, "DONE", Some("picked")),
            ("pickup", Step::Reopen, State::Doing, "TODO", Some("reopened")),
            ("dropoff", Step::Complete, State::Done, "DONE", Some("dropped")),
            ("dropoff", Step::Reopen, State::Doing, "TODO", Some("reopened")),
            ("pickup", Step::Complete, State::Done, "DONE", Some("picked")),
            ("dropoff", Step::Fail("NOT_AT_HOME"), State::Failed, "TODO", Some("failed")),
            ("dropoff", Step::Fail("REFUSED"), State::Failed, "TODO", None),
            ("dropoff", Step::Reschedule(2), State::Todo, "TODO", Some("rescheduled")),
            ("dropoff", Step::Start, State::Doing, "TODO", Some("in_transit")),
            ("dropoff", Step::Reopen, State::Doing, "TODO", None),
            ("dropoff", Step::Complete, State::Done, "DONE", Some("completed")),
        ] {
            platform.advance(SignedDuration::from_mins(1));
            let before = json_ld(&client.get(iri(&delivery[task])).await, 200);

            let changed = dispatch.take(step, &delivery[task]).await.unwrap();

            assert_eq!(changed.state(), state, "{task} {step:?}");
            let reason = if state == State::Failed { "NOT_AT_HOME" } else { "" };
            assert_eq!(changed.failure_reason, reason, "{task} {step:?}");
            let since = changed.state_time.unwrap().seconds;
            let is_now = since == platform.now().as_second();
            assert_eq!(is_now, event.is_some(), "{task} {step:?}");
            let after = json_ld(&client.get(iri(&delivery[task])).await, 200);
            assert_eq!(after["status"], status, "{task} {step:?}");
            let is_moved = before["before"] != after["before"];
            assert_eq!(is_moved, matches!(step, Step::Reschedule(_)), "{task} {step:?}");
            expected_events.extend(event);
        }

        let count = expected_events.len();
        assert_eq!(events(&client, count).await, expected_events);
        for task in ["pickup", "dropoff"] {
            for step in [Step::Start, Step::Fail("OTHER"), Step::Reopen, Step::Reschedule(3)] {
                let refused = dispatch.take(step, &delivery[task]).await.unwrap_err();
                assert_eq!(refused.code(), Code::FailedPrecondition, "{task} {step:?}");
            }
        }
        let other = client.create_delivery(draft()).await;
        dispatch.take(Step::Start, &other["pickup"]).await.unwrap();
        expected_events.push("started");
        assert_eq!(events(&client, count + 1).await, expected_events);
    }

    async fn a_refusal_names_the_state_since_when_and_who_set_it(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        dispatch.take(Step::Start, &delivery["pickup"]).await.unwrap();

        let refused = client.delete(iri(&delivery)).await;

        assert_eq!((refused.status, &refused.json["code"]), (409, &"task_state".into()));
        let detail = refused.json["detail"].as_str().unwrap();
        let now = platform.now().to_zoned(jiff::tz::TimeZone::get("Europe/Paris").unwrap());
        let since = now.strftime("%Y-%m-%dT%H:%M:%S%:z");
        assert_eq!(detail, format!("the pickup is DOING since {since}, set by dispatch"));
        let reopened = dispatch.take(Step::Reopen, &delivery["dropoff"]).await.unwrap_err();
        assert_eq!(reopened.code(), Code::FailedPrecondition);
    }

    async fn a_cancelled_delivery_is_rescheduled_with_both_its_tasks(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        client.delete(iri(&delivery)).await.expect(204);

        let refused = dispatch.take(Step::Reschedule(1), &delivery["dropoff"]).await.unwrap_err();

        assert_eq!(refused.code(), Code::InvalidArgument);
        let window = json_ld(&client.get(iri(&delivery["dropoff"])).await, 200);
        let request = RescheduleTaskRequest { both: true, ..moved(&window, 1) };
        dispatch.reschedule(request).await.unwrap();
        let after = json_ld(&client.get(iri(&delivery)).await, 200);
        assert_eq!(after["cancelledAt"], Value::Null);
        for task in ["pickup", "dropoff"] {
            dispatch.take(Step::Complete, &delivery[task]).await.unwrap();
        }
    }

    async fn what_is_wrong_in_a_command_changes_nothing(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let operator = platform.operator().await;
        let courier = operator.create_client("", &["tasks:all"]).await;
        let courier = Dispatch::with(platform, &courier, "tasks:all").await;
        let delivery = client.create_delivery(draft()).await;
        let task = &delivery["pickup"];
        let before = json_ld(&client.get(iri(&delivery)).await, 200);

        for step in [Step::Start, Step::Fail("OTHER"), Step::Reopen, Step::Reschedule(1)] {
            let refused = courier.take(step, task).await.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied, "{step:?}");
        }
        for reason in ["", "not at home", "É"] {
            let refused = dispatch.take(Step::Fail(reason), task).await.unwrap_err();
            assert_eq!(refused.code(), Code::InvalidArgument, "{reason}");
        }
        let refused = dispatch.take(Step::Reschedule(1000), task).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "later than the dropoff");
        let unknown = serde_json::json!({"@id": format!("/api/tasks/{UNKNOWN_ID}")});
        let refused = dispatch.take(Step::Start, &unknown).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound);
        assert_eq!(json_ld(&client.get(iri(&delivery)).await, 200), before);
    }

    async fn what_a_program_with_tasks_all_completes_is_set_by_dispatch(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        platform.courier().await.complete(iri(&delivery["pickup"])).await;

        let refused = client.delete(iri(&delivery)).await;

        assert_eq!(refused.status, 409);
        let detail = refused.json["detail"].as_str().unwrap();
        assert!(detail.starts_with("the pickup is DONE since"), "{detail}");
        assert!(detail.ends_with("set by dispatch"), "{detail}");
    }

    async fn a_completed_delivery_names_the_task_that_stays_done(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        for task in ["pickup", "dropoff"] {
            dispatch.take(Step::Complete, &delivery[task]).await.unwrap();
        }

        let refused = dispatch.take(Step::Reopen, &delivery["dropoff"]).await.unwrap_err();

        let now = platform.now().to_zoned(jiff::tz::TimeZone::get("Europe/Paris").unwrap());
        let since = now.strftime("%Y-%m-%dT%H:%M:%S%:z");
        let expected = format!(
            "the delivery is completed, which is final: the dropoff is DONE since {since}, set by dispatch"
        );
        assert_eq!(refused.message(), expected);
    }

    async fn the_operator_works_tasks_by_commands(platform: &Platform) {
        let client = platform.client().await;
        let delivery = client.create_delivery(draft()).await;
        let (pickup, dropoff) = (iri(&delivery["pickup"]), iri(&delivery["dropoff"]));
        let reschedule = ["tasks", "reschedule", dropoff, "--time-slot=2020-04-03 12:00-14:00"];

        for (command, state) in [
            (&["tasks", "start", pickup][..], "DOING"),
            (&["tasks", "fail", pickup, "--reason=CLOSED_STORE"], "FAILED"),
            (&reschedule, "TODO"),
            (&["tasks", "complete", dropoff], "DONE"),
            (&["tasks", "reopen", dropoff], "DOING"),
            (&["tasks", "show", dropoff], "DOING"),
        ] {
            let printed = platform.run_delivery_json(command).await;
            assert_eq!(printed["state"], state, "{command:?}");
        }
        let after = json_ld(&client.get(dropoff).await, 200);
        assert_eq!(after["after"], "2020-04-03T12:00:00+02:00");
    }

    /// "No task DONE (dispatch)": also what is begun or has failed, which a shop may not cancel.
    async fn dispatch_cancels_a_delivery_of_any_store_that_has_begun_or_failed(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let board = platform.operator().await.create_client("", &["dispatch"]).await;
        let board = platform.client_for(&board, &["dispatch"]).await;

        for step in [Step::Start, Step::Fail("REFUSED")] {
            let delivery = client.create_delivery(draft()).await;
            dispatch.take(step, &delivery["dropoff"]).await.unwrap();
            assert_eq!(client.delete(iri(&delivery)).await.status, 409, "{step:?}");

            for _ in 0..2 {
                board.delete(iri(&delivery)).await.expect(204);
            }

            let after = json_ld(&client.get(iri(&delivery)).await, 200);
            assert_ne!(after["cancelledAt"], Value::Null, "{step:?}");
        }
        let done = client.create_delivery(draft()).await;
        dispatch.take(Step::Complete, &done["pickup"]).await.unwrap();
        let refused = board.delete(iri(&done)).await;
        assert_eq!((refused.status, &refused.json["code"]), (409, &"task_state".into()));
        let unknown = board.delete(&format!("/api/deliveries/{UNKNOWN_ID}")).await;
        assert_eq!(unknown.status, 404);
    }

    async fn an_erased_delivery_is_not_begun_again(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        dispatch.take(Step::Complete, &delivery["pickup"]).await.unwrap();
        platform.run_delivery_json(&["erase", "--delivery", iri(&delivery)]).await;

        for (task, step) in [
            ("dropoff", Step::Start),
            ("pickup", Step::Reopen),
            ("dropoff", Step::Reschedule(1)),
        ] {
            let refused = dispatch.take(step, &delivery[task]).await.unwrap_err();
            assert_eq!(refused.code(), Code::FailedPrecondition, "{step:?}");
            assert_eq!(refused.message(), "the personal data of the delivery is erased");
        }
        dispatch.take(Step::Complete, &delivery["dropoff"]).await.unwrap();
    }

    /// "Two commands at one instant: one wins, the other learns which."
    async fn of_a_completion_and_a_failure_at_once_one_wins(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;

        for _ in 0..RACES {
            let delivery = client.create_delivery(draft()).await;
            let task = &delivery["pickup"];
            let (completed, failed) = tokio::join!(
                dispatch.take(Step::Complete, task),
                dispatch.take(Step::Fail("OTHER"), task),
            );

            let (winner, loser) = match (completed, failed) {
                (Ok(task), Err(error)) | (Err(error), Ok(task)) => (task, error),
                both => panic!("{both:?}"),
            };
            assert_eq!(loser.code(), Code::FailedPrecondition);
            let state = winner.state().as_str_name().trim_start_matches("STATE_");
            assert!(loser.message().contains(state), "{loser:?}");
        }
    }
}
