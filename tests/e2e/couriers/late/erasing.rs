//! Erasing the personal data of late reports, by command; retention erases in the same way.

use serde_json::json;

use super::{End, Remarks, events, incidents, key, last_events, minute, move_away};
use crate::{
    couriers::{Desk, Order, assert_refused, orders, phone::phone},
    harness::{Platform, iri, stored_text},
};

/// In every text that a courier writes.
const MARK: &str = "Xyzzy";

on_both_databases! {
    async fn what_a_conflict_keeps_is_erased_with_the_delivery(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        let task = &order.pickup;
        move_away(platform, &desk, &order, [&ada, ""]).await;
        desk.fail(task).await;
        minute(platform);
        let remarks = Remarks {
            notes: "Xyzzy was asleep",
            contact_name: "Zoé Xyzzy",
            ..Remarks::of_a_minute_ago(platform)
        };
        let done = proto::CompleteTaskRequest {
            idempotency: Some(key("done")),
            ..remarks.done(task)
        };
        let refused = phone.complete_task(done.clone()).await.unwrap_err();
        assert_refused(&refused, "TASK_STATE");
        let failed = proto::FailTaskRequest {
            reason: format!("{MARK}_SLEEPS"),
            ..remarks.failed(&order.dropoff)
        };
        let applied = phone.fail_task(failed).await.unwrap();
        assert!(applied.has_incidents);
        assert!(stored_text(platform).await.contains(MARK));
        let known = events(&desk, task).await;

        let erase = ["erase", "--delivery", iri(&order.delivery)];
        let printed = platform.run_delivery_json(&erase).await;

        assert_eq!(printed, json!([{ "delivery": iri(&order.delivery) }]));
        assert!(!stored_text(platform).await.contains(MARK));
        assert_eq!(events(&desk, task).await, known);
        for task in [task, &order.dropoff] {
            for event in last_events::<2>(&desk, task).await {
                let texts = [&event.notes, &event.contact_name, &event.courier, &event.api_client];
                assert_eq!(texts, [""; 4], "{event:?}");
            }
            let incident = &incidents(&desk, task).await[0];
            let texts = [&incident.description, &incident.api_client];
            assert_eq!((texts, incident.metadata.len()), ([&String::new(); 2], 0));
        }
        // With its key it gets its first response; without one, it is not the courier's any more.
        let repeated = phone.complete_task(done).await.unwrap_err();
        assert_eq!(repeated.message(), refused.message());
        let again = End::Done.report(&phone, task, &remarks).await.unwrap_err();
        crate::couriers::assert_unknown(&again, task);
        assert!(!stored_text(platform).await.contains(MARK));
    }

    /// Erasing keeps places in lists.
    async fn an_erased_task_of_a_courier_keeps_nothing_of_a_conflict(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;
        desk.fail(&order.pickup).await;
        let erase = ["erase", "--delivery", iri(&order.delivery)];
        platform.run_delivery_json(&erase).await;
        let known = events(&desk, &order.pickup).await;
        minute(platform);
        let remarks = Remarks {
            notes: "Xyzzy was asleep",
            ..Remarks::of_a_minute_ago(platform)
        };

        let refused = End::Done.report(&phone, &order.pickup, &remarks).await.unwrap_err();

        assert_refused(&refused, "TASK_STATE");
        assert_eq!(events(&desk, &order.pickup).await, known);
        assert_eq!(incidents(&desk, &order.pickup).await, []);
        assert!(!stored_text(platform).await.contains(MARK));
    }
}
