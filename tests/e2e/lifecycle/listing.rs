//! Lists of tasks, by command.

use serde_json::json;

use super::{Dispatch, Step};
use crate::harness::Platform;

on_both_databases! {
    /// "Tasks whose window touches it", of all stores, and not those of other days.
    async fn the_tasks_of_a_day_are_listed_with_their_stores_and_other_tasks(platform: &Platform) {
        let client = platform.client().await;
        let other = platform.new_store_client().await;
        let dispatch = Dispatch::authorized(platform).await;
        let on = |day: &str| json!({
            "dropoff": {
                "address": {"streetAddress": "48 Rue de Rivoli", "latLng": [48.857, 2.353]},
                "timeSlot": format!("{day} 18:00-19:00"),
            },
            "pickup": {
                "address": {"streetAddress": "24 Rue de la Paix", "latLng": [48.869, 2.331]},
                "timeSlot": format!("{day} 12:00-14:00"),
            },
        });
        let first = client.create_delivery(on("2020-04-02")).await;
        let second = other.create_delivery(on("2020-04-02")).await;
        client.create_delivery(on("2020-04-03")).await;
        dispatch.take(Step::Fail("CLOSED_STORE"), &second["pickup"]).await.unwrap();

        let list = async |flags: &[&str]| {
            let printed = platform.run_delivery_json(&[&["tasks", "list"], flags].concat()).await;
            printed["tasks"].as_array().unwrap().clone()
        };
        let tasks = list(&[]).await;

        let ends: Vec<_> = tasks.iter().map(|task| task["before"].as_str().unwrap()).collect();
        let expected = ["14:00", "14:00", "19:00", "19:00"].map(|time| format!("2020-04-02T{time}:00+02:00"));
        assert_eq!(ends, expected);
        let blocked = tasks.iter().find(|task| task["iri"] == second["dropoff"]["@id"]).unwrap();
        assert_eq!((&blocked["blocked"], &blocked["other_state"]), (&json!(true), &json!("FAILED")));
        assert_eq!(blocked["other_task"], second["pickup"]["@id"]);
        assert_eq!(list(&["--day=2020-04-03"]).await.len(), 2);
        assert_eq!(list(&["--day=2020-04-03", "--overdue", "--state=todo"]).await.len(), 5);
        assert!(tasks.iter().any(|task| task["iri"] == first["pickup"]["@id"]));
        let failed = list(&["--state=FAILED"]).await;
        assert_eq!((failed.len(), &failed[0]["failure_reason"]), (1, &json!("CLOSED_STORE")));
        let wrong = platform.run_delivery_output(&["tasks", "list", "--day=tomorrow"]).await;
        assert_eq!(wrong.status.code(), Some(1));
    }
}
