//! Late reports that are repeated, with keys and without.

use proto::{CompleteTaskRequest, FailTaskRequest, task::State};

use super::{End, Remarks, count, events, incidents, key, minute, move_away};
use crate::{
    couriers::{Desk, Order, TODAY, assert_refused, orders, phone::phone},
    harness::Platform,
};

on_both_databases! {
    /// "A repeated command gets its first response, whatever happened since, a `task_state` refusal too."
    async fn a_refusal_is_repeated_with_its_key_and_kept_once(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, ""]).await;
        desk.fail(&order.pickup).await;
        minute(platform);
        let remarks = Remarks::of_a_minute_ago(platform);
        let done = CompleteTaskRequest {
            idempotency: Some(key("done")),
            ..remarks.done(&order.pickup)
        };

        let refused = phone.complete_task(done.clone()).await.unwrap_err();

        assert_refused(&refused, "TASK_STATE");
        let evening = format!("{TODAY} 12:30-14:00");
        desk.reschedule(&order.pickup, &evening, false).await.unwrap();
        let repeated = phone.complete_task(done).await.unwrap_err();
        assert_refused(&repeated, "TASK_STATE");
        assert_eq!(repeated.message(), refused.message());
        assert_eq!(count(&desk, &order.pickup, "task:conflict").await, 1);
        assert_eq!(incidents(&desk, &order.pickup).await.len(), 1);
        // Another key, and another state: it is applied.
        let done = CompleteTaskRequest {
            idempotency: Some(key("done again")),
            ..remarks.done(&order.pickup)
        };
        let applied = phone.complete_task(done.clone()).await.unwrap();
        assert_eq!(applied.state(), State::Done);
        assert_eq!(phone.complete_task(done).await.unwrap(), applied);
        assert_eq!(incidents(&desk, &order.pickup).await.len(), 2);
    }

    /// "The same target state again is 200 without an event."
    async fn who_has_ended_a_task_late_repeats_that_without_an_event(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let (of_ada, other_of_ada) = (phone(platform, &ada).await, phone(platform, &ada).await);
        let of_ben = phone(platform, &ben).await;
        for (end, other) in [(End::Done, End::Failed), (End::Failed, End::Done)] {
            let [order]: [Order; 1] = orders(&client).await;
            move_away(platform, &desk, &order, [&ada, &ben]).await;
            minute(platform);
            let (task, remarks) = (&order.pickup, Remarks::of_a_minute_ago(platform));
            let applied = end.report(&of_ada, task, &remarks).await.unwrap();
            let known = events(&desk, task).await;

            // Ben has the task, and finds it as he reports it.
            // Only who has the task sees who has it.
            for (phone, shown) in [(&of_ada, ""), (&other_of_ada, ""), (&of_ben, &*ben)] {
                let repeated = end.report(phone, task, &remarks).await.unwrap();
                assert_eq!((repeated.state(), &repeated.state_time), (applied.state(), &applied.state_time));
                assert_eq!(repeated.courier, shown);
            }

            assert_eq!(events(&desk, task).await, known);
            assert_eq!(incidents(&desk, task).await.len(), 1);
            for phone in [&of_ada, &of_ben, &other_of_ada] {
                let refused = other.report(phone, task, &remarks).await.unwrap_err();
                assert_refused(&refused, "TASK_STATE");
            }
            assert_eq!(count(&desk, task, "task:conflict").await, 2);
            assert_eq!(incidents(&desk, task).await.len(), 3);
        }
    }

    async fn a_report_with_violations_is_refused_whole_and_not_kept(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, ""]).await;
        let wrong = FailTaskRequest {
            name: order.pickup.clone(),
            reason: "not a code".to_owned(),
            notes: "a".repeat(2001),
            ..FailTaskRequest::default()
        };

        let refused = phone.fail_task(wrong).await.unwrap_err();

        crate::couriers::assert_violations(&refused, &["notes", "reason"]);
        assert_eq!(incidents(&desk, &order.pickup).await, []);
        assert_eq!(desk.task(&order.pickup).await.state(), State::Todo);
    }
}
