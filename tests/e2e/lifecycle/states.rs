//! The state of a delivery and of its tasks over REST.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Dispatch, Step};
use crate::{
    deliveries::filtering::matching_ids,
    harness::{ApiClient, Platform, all_in_one::credentials, assertions::json_ld, draft, iri},
};

/// A delivery in a state.
struct Example {
    state: &'static str,
    /// Of the pickup and the dropoff.
    tasks: [&'static str; 2],
    /// As it was created.
    delivery: Value,
}

/// A delivery in each state, by age.
async fn one_in_each_state(platform: &Platform, client: &ApiClient) -> Vec<Example> {
    let dispatch = Dispatch::authorized(platform).await;
    let courier = platform.operator().await.create_courier("Ada").await;
    let mut examples = Vec::new();
    for (state, tasks, steps) in [
        ("created", ["TODO", "TODO"], &[][..]),
        ("assigned", ["TODO", "TODO"], &[]),
        ("started", ["DOING", "TODO"], &[("pickup", Step::Start)]),
        ("picked", ["DONE", "TODO"], &[("pickup", Step::Complete)]),
        (
            "in_transit",
            ["DONE", "DOING"],
            &[("pickup", Step::Complete), ("dropoff", Step::Start)],
        ),
        ("dropped", ["TODO", "DONE"], &[("dropoff", Step::Complete)]),
        (
            "failed",
            ["DONE", "FAILED"],
            &[
                ("pickup", Step::Complete),
                ("dropoff", Step::Fail("NOT_AT_HOME")),
            ],
        ),
        (
            "completed",
            ["DONE", "DONE"],
            &[("pickup", Step::Complete), ("dropoff", Step::Complete)],
        ),
        ("cancelled", ["CANCELLED", "CANCELLED"], &[]),
    ] {
        let delivery = client.create_delivery(draft()).await;
        for (task, step) in steps {
            dispatch.take(*step, &delivery[*task]).await.unwrap();
        }
        if state == "assigned" {
            let dropoff = iri(&delivery["dropoff"]);
            let assign = ["tasks", "assign", "--courier", &courier, dropoff];
            platform.run_delivery_json(&assign).await;
        } else if state == "cancelled" {
            client.delete(iri(&delivery)).await.expect(204);
        }
        platform.advance(SignedDuration::from_mins(1));
        examples.push(Example {
            state,
            tasks,
            delivery,
        });
    }
    examples
}

on_both_databases! {
    /// "`status` shows `DONE` for DONE and `TODO` for the rest, and `state` the full word."
    async fn a_delivery_and_its_tasks_show_their_states(platform: &Platform) {
        let client = platform.client().await;
        let examples = one_in_each_state(platform, &client).await;
        let listed = json_ld(&client.get("/api/deliveries").await, 200);
        let listed = listed["hydra:member"].as_array().unwrap().iter().rev();

        for (example, listed) in examples.iter().zip(listed) {
            let Example { state, tasks, delivery } = example;
            let mut read = json_ld(&client.get(iri(delivery)).await, 200);
            for (kind, word) in ["pickup", "dropoff"].into_iter().zip(tasks) {
                let mut task = json_ld(&client.get(iri(&delivery[kind])).await, 200);
                let status = if *word == "DONE" { "DONE" } else { "TODO" };
                let shown = (&task["state"], &task["status"]);
                assert_eq!(shown, (&json!(word), &json!(status)), "{state} {kind}");
                task.as_object_mut().unwrap().remove("@context");
                assert_eq!(read[kind], task, "{state}");
            }
            assert_eq!(read["state"], *state);
            read.as_object_mut().unwrap().remove("@context");
            assert_eq!(read, *listed, "{state}");
        }
    }

    /// "The filter `status=TODO` means not DONE, for everyone; `state=` filters the full word."
    async fn deliveries_are_listed_by_state(platform: &Platform) {
        let client = platform.client().await;
        let older = one_in_each_state(platform, &client).await;
        let newer = one_in_each_state(platform, &client).await;
        let ids = async |query: &str| matching_ids(&client, query).await;

        for (older, newer) in older.iter().zip(&newer) {
            let state = older.state;
            let both = [newer, older].map(|example| example.delivery["id"].clone());
            assert_eq!(ids(&format!("state={state}&itemsPerPage=1")).await, both, "{state}");
            let (of_status, of_other) = if state == "completed" {
                ("DONE", "TODO")
            } else {
                ("TODO", "DONE")
            };
            assert_eq!(ids(&format!("state={state}&status={of_status}")).await, both, "{state}");
            let none = ids(&format!("state={state}&status={of_other}")).await;
            assert!(none.is_empty(), "{state}: {none:?}");
        }
        let wrong = client.get("/api/deliveries?state=DOING").await.expect(400);
        let message = "must be created or assigned or started or picked or in_transit or dropped or failed or \
            completed or cancelled, not \"DOING\"";
        let expected = json!([{"propertyPath": "state", "message": message, "code": "unknown_value"}]);
        assert_eq!(wrong["violations"], expected);
    }

    /// "`clients create --task-status full|specified`: with `full` (couriers', dispatchers' and sessions' default) both
    /// show the full word."
    async fn a_client_sees_the_statuses_that_it_was_created_for(platform: &Platform) {
        let client = platform.client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let delivery = client.create_delivery(draft()).await;
        dispatch.take(Step::Fail("REFUSED"), &delivery["dropoff"]).await.unwrap();
        let reader = async |scopes: &str, flags: &[&str]| {
            let scope_flag = format!("--scopes={scopes}");
            let create = ["clients", "create", "--name=Reader", &scope_flag];
            let created = platform.run_delivery_json(&[&create[..], flags].concat()).await;
            let scopes: Vec<_> = scopes.split(' ').collect();
            let reader = platform.client_for(&credentials(&created), &scopes).await;
            (created["task_status"].clone(), reader)
        };
        let (full, specified) = ("--task-status=full", "--task-status=specified");
        let store = format!("--store={}", platform.store);

        for (scopes, flags, kind, status) in [
            ("deliveries tasks", &[&*store][..], "specified", "TODO"),
            ("deliveries tasks", &[&*store, full], "full", "FAILED"),
            ("dispatch", &[], "full", "FAILED"),
            ("dispatch", &[specified], "specified", "TODO"),
            ("tasks:all", &[], "specified", "TODO"),
            ("tasks:all", &[full], "full", "FAILED"),
        ] {
            let (shown, reader) = reader(scopes, flags).await;
            assert_eq!(shown, kind, "{scopes} {flags:?}");
            let task = json_ld(&reader.get(iri(&delivery["dropoff"])).await, 200);
            assert_eq!((&task["status"], &task["state"]), (&json!(status), &json!("FAILED")), "{scopes} {flags:?}");
            if flags.contains(&&*store) {
                let read = json_ld(&reader.get(iri(&delivery)).await, 200);
                let to_do = json_ld(&reader.get("/api/deliveries?status=TODO").await, 200);
                for delivery in [&read, &to_do["hydra:member"][0]] {
                    assert_eq!((&delivery["pickup"]["status"], &delivery["dropoff"]), (&json!("TODO"), &read["dropoff"]));
                }
                assert_eq!(read["dropoff"]["status"], status);
            }
        }
        let unknown = ["clients", "create", "--name=Reader", "--scopes=dispatch", "--task-status=half"];
        assert!(!platform.run_delivery_output(&unknown).await.status.success());
    }
}
