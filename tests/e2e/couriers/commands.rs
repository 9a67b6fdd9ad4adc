//! `delivery couriers` and the commands of `delivery tasks` that assign.

use serde_json::{Value, json};

use super::{Order, TODAY, TOMORROW, orders};
use crate::harness::Platform;

on_both_databases! {
    async fn an_operator_manages_couriers_and_assigns_tasks_in_a_terminal(platform: &Platform) {
        let run = async |arguments: &[&str]| platform.run_delivery_json(arguments).await;
        let ada = run(&["couriers", "create", "--name=Ada", "--telephone=0612345678"]).await;
        let id = ada["id"].as_str().unwrap().to_owned();
        let expected = json!({ "id": id, "name": "Ada", "telephone": "+33612345678", "disabled": false });
        assert_eq!(ada, expected);
        assert_eq!(run(&["couriers", "show", &id]).await, expected);

        let client = platform.client().await;
        let [first, second]: [Order; 2] = orders(&client).await;
        let of_ada = format!("--courier={id}");
        let assigned = run(&["tasks", "assign", &of_ada, &first.dropoff, &second.pickup]).await;
        let moved = [&first.dropoff, &second.pickup].map(|task| json!({ "iri": format!("/api/{task}") }));
        assert_eq!(assigned, json!({ "tasks": moved }));
        let shown = run(&["tasks", "show", &first.pickup]).await;
        assert_eq!((&shown["courier"], &shown["list_day"]), (&json!(id), &json!(TODAY)));
        let tasks = async |arguments: &[&str]| {
            let printed = run(arguments).await;
            let rows = printed["tasks"].as_array().unwrap().clone();
            let task = |row: &Value| {
                let iri = row.get("task").or(row.get("iri")).unwrap();
                iri.as_str().unwrap().trim_start_matches("/api/").to_owned()
            };
            rows.iter().map(task).collect::<Vec<_>>()
        };
        let all = [&first.pickup, &first.dropoff, &second.pickup, &second.dropoff].map(Clone::clone);
        assert_eq!(tasks(&["couriers", "lists"]).await, all);
        assert_eq!(tasks(&["tasks", "list", &of_ada]).await.len(), 4);
        assert_eq!(tasks(&["tasks", "list", "--unassigned"]).await, Vec::<String>::new());

        run(&["tasks", "unassign", &first.pickup]).await;
        let tomorrow = format!("--day={TOMORROW}");
        run(&["tasks", "assign", &of_ada, &tomorrow, &second.pickup]).await;
        assert_eq!(tasks(&["couriers", "lists"]).await, Vec::<String>::new());
        assert_eq!(tasks(&["couriers", "lists", &tomorrow]).await, all[2..]);
        assert_eq!(tasks(&["tasks", "list", "--unassigned"]).await.len(), 2);

        run(&["tasks", "complete", &second.pickup]).await;
        let settled = ["tasks", "unassign", &second.pickup, "--json"];
        let settled = platform.run_delivery_output(&settled).await;
        assert_eq!(settled.status.code(), Some(1));
        let disabled = run(&["couriers", "disable", &id]).await;
        assert_eq!(disabled["disabled"], true);
        let refused = platform.run_delivery_output(&["tasks", "assign", &of_ada, &first.pickup]).await;
        assert_eq!(refused.status.code(), Some(1));
        let renamed = run(&["couriers", "set", &id, "--name=Ada L", "--telephone="]).await;
        assert_eq!((&renamed["name"], &renamed["telephone"]), (&json!("Ada L"), &json!(null)));
        assert_eq!(run(&["couriers", "list"]).await, json!({ "couriers": [renamed] }));
        assert_eq!(run(&["couriers", "enable", &id]).await["disabled"], false);
    }
}

on_both_databases! {
    async fn a_dispatcher_watches_a_list_in_a_terminal(platform: &Platform) {
        let client = platform.client().await;
        let [order]: [Order; 1] = orders(&client).await;
        let run = async |arguments: &[&str]| platform.run_delivery_json(arguments).await;
        let rows = async || run(&["tasks", "list"]).await["tasks"].as_array().unwrap().clone();
        let mut documents = platform.spawn_delivery(&["tasks", "watch", "--json"]);
        let mut lines = platform.spawn_delivery(&["tasks", "watch", "--state=todo"]);

        let list: Value = serde_json::from_str(&documents.next().await).unwrap();
        assert_eq!((&list["tasks"], &list["left"]), (&json!(rows().await), &json!([])));
        let iri = |task: &str| format!("/api/{task}");
        let pickup = lines.find(|line| line.contains("PICKUP").then(|| line.to_owned())).await;
        assert!(pickup.starts_with(&iri(&order.pickup)), "{pickup}");

        run(&["tasks", "complete", &order.pickup]).await;
        let is_done = |line: &str| {
            let change = change_in(line);
            let mut rows = change["tasks"].as_array().unwrap().iter();
            rows.any(|row| row["state"] == "DONE").then_some(change)
        };
        let change = documents.find(is_done).await;
        assert_eq!((&change["tasks"], &change["left"]), (&json!(rows().await), &json!([])));
        assert!(change["position"].as_i64() > list["position"].as_i64());
        let left = format!("{}  left", iri(&order.pickup));
        lines.find(|line| (line == left).then_some(())).await;

        let slot = format!("--time-slot={TOMORROW} 10:00-12:00");
        run(&["tasks", "reschedule", &order.dropoff, &slot]).await;
        let has_left = |line: &str| {
            let change = change_in(line);
            change["left"].as_array().unwrap().contains(&json!(iri(&order.dropoff))).then_some(())
        };
        documents.find(has_left).await;
    }
}

/// A printed change. Fails if nothing changed: a message with a position only is not printed.
fn change_in(line: &str) -> Value {
    let change: Value = serde_json::from_str(line).unwrap();
    let of = |member: &str| change[member].as_array().unwrap().len();
    assert!(of("tasks") + of("left") > 0, "{line}");
    change
}
