//! Reports that the state of the task refuses: they are in the history, and dispatch gets an incident.

use proto::{FailTaskRequest, Incident, TaskEvent, incident, task::State, task_event::Actor};

use super::{End, Remarks, after, count, events, incidents, key, last_events, minute, move_away};
use crate::{
    couriers::{Desk, Order, TODAY, assert_refused, now, orders, phone::phone},
    harness::{ApiClient, Platform, iri},
};

const STATES: [State; 3] = [State::Done, State::Failed, State::Cancelled];

/// Brings the pickup of a delivery into a state, as the desk or the shop does.
async fn settle(desk: &Desk, client: &ApiClient, order: &Order, state: State) {
    match state {
        State::Done => drop(desk.complete(&order.pickup).await),
        State::Failed => drop(desk.fail(&order.pickup).await),
        _ => drop(client.delete(iri(&order.delivery)).await.expect(204)),
    }
}

on_both_databases! {
    /// Of each state, with each command, by the courier who has the task and by one who had it.
    async fn a_report_that_the_state_refuses_is_kept_once(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let phones = [phone(platform, &ada).await, phone(platform, &ada).await];
        for state in STATES {
            for (end, has_left) in [
                (End::Done, false),
                (End::Done, true),
                (End::Failed, false),
                (End::Failed, true),
            ] {
                let case = format!("{state:?} {end:?} {has_left}");
                let [order]: [Order; 1] = orders(&client).await;
                if has_left {
                    move_away(platform, &desk, &order, [&ada, &ben]).await;
                } else {
                    desk.assign(&[&order.pickup], "", &ada).await;
                }
                minute(platform);
                settle(&desk, &client, &order, state).await;
                let before = desk.task(&order.pickup).await;
                let known = events(&desk, &order.pickup).await;
                minute(platform);
                let remarks = Remarks::of_a_minute_ago(platform);

                let reported = end.report(&phones[0], &order.pickup, &remarks).await;

                let state = before.state().as_str_name().strip_prefix("STATE_").unwrap();
                if state == end.word() && !has_left {
                    assert_eq!(reported.unwrap(), before, "{case}");
                    assert_eq!(events(&desk, &order.pickup).await, known, "{case}");
                    continue;
                }
                let refused = reported.unwrap_err();
                assert_refused(&refused, "TASK_STATE");
                let message = refused.message();
                assert!(message.starts_with(&format!("the pickup is {state} since ")), "{case} {message}");
                let kept = TaskEvent {
                    event: "task:conflict".to_owned(),
                    create_time: now(platform),
                    occurred_time: remarks.occurred_time,
                    failure_reason: end.reason().to_owned(),
                    contact_name: if end == End::Done { "Zoé".to_owned() } else { String::new() },
                    notes: "Left at the door".to_owned(),
                    actor: Actor::Courier.into(),
                    api_client: phones[0].api_client.clone(),
                    courier: ada.clone(),
                    ..TaskEvent::default()
                };
                let description = format!("{} was reported by a courier while the task is {state}", end.word());
                let opened = TaskEvent {
                    event: "task:incident-reported".to_owned(),
                    create_time: after(now(platform), 1),
                    contact_name: String::new(),
                    notes: description.clone(),
                    ..kept.clone()
                };
                assert_eq!(last_events(&desk, &order.pickup).await, [kept, opened], "{case}");
                let found = incidents(&desk, &order.pickup).await;
                let incident = Incident {
                    name: found[0].name.clone(),
                    task: order.pickup.clone(),
                    state: incident::State::Open.into(),
                    description,
                    failure_reason: end.reason().to_owned(),
                    create_time: after(now(platform), 1),
                    occurred_time: remarks.occurred_time,
                    metadata: [("conflict".to_owned(), end.word().to_owned())].into(),
                    store: platform.store.clone(),
                    actor: Actor::Courier.into(),
                    api_client: phones[0].api_client.clone(),
                    ..Incident::default()
                };
                assert_eq!(found, std::slice::from_ref(&incident), "{case}");
                let conflicted = desk.task(&order.pickup).await;
                let expected = proto::Task {
                    has_incidents: true,
                    update_time: incident.create_time,
                    ..before
                };
                assert_eq!(conflicted, expected, "{case}");

                // Repeated, also with the courier's other phone.
                for phone in &phones {
                    let again = end.report(phone, &order.pickup, &remarks).await.unwrap_err();
                    assert_eq!(again.message(), message, "{case}");
                }
                assert_eq!(incidents(&desk, &order.pickup).await, [incident], "{case}");
                assert_eq!(desk.task(&order.pickup).await, conflicted, "{case}");
            }
        }
    }

    async fn each_courier_command_and_state_has_a_conflict_of_its_own(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let (of_ada, of_ben) = (phone(platform, &ada).await, phone(platform, &ben).await);
        let [order]: [Order; 1] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, &ben]).await;
        desk.assign(&[&order.pickup], &ben, "").await;
        let task = &order.pickup;
        let mut conflicts = 0;
        for state in [State::Failed, State::Cancelled, State::Failed] {
            settle(&desk, &client, &order, state).await;
            minute(platform);
            let remarks = Remarks::of_a_minute_ago(platform);
            for (phone, end) in [
                (&of_ada, End::Done),
                (&of_ben, End::Done),
                (&of_ada, End::Failed),
                (&of_ada, End::Done),
                (&of_ben, End::Done),
            ] {
                let refused = end.report(phone, task, &remarks).await.unwrap_err();
                assert_refused(&refused, "TASK_STATE");
            }
            conflicts += 3;
            assert_eq!(count(&desk, task, "task:conflict").await, conflicts, "{state:?}");
            assert_eq!(incidents(&desk, task).await.len(), conflicts, "{state:?}");
            let evening = format!("{TODAY} 18:00-19:00");
            desk.reschedule(task, &evening, true).await.unwrap();
            assert!(!desk.task(task).await.has_incidents);
        }
    }

    /// A report with a key of its own is another one.
    async fn each_report_with_a_key_is_kept(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let phone = phone(platform, &ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, ""]).await;
        settle(&desk, &client, &order, State::Cancelled).await;
        minute(platform);

        for (reason, times) in [("NOT_AT_HOME", 2), ("DAMAGED", 1)] {
            for _ in 0..times {
                let failed = FailTaskRequest {
                    name: order.pickup.clone(),
                    reason: reason.to_owned(),
                    idempotency: Some(key(reason)),
                    ..FailTaskRequest::default()
                };
                assert_refused(&phone.fail_task(failed).await.unwrap_err(), "TASK_STATE");
            }
        }

        let history = desk.history(&order.pickup).await;
        let conflicts = history.iter().filter(|event| event.event == "task:conflict");
        let reasons: Vec<_> = conflicts.map(|event| &*event.failure_reason).collect();
        assert_eq!(reasons, ["NOT_AT_HOME", "DAMAGED"]);
        assert_eq!(incidents(&desk, &order.pickup).await.len(), 2);
    }

    /// They see the answer themselves.
    async fn what_dispatch_reports_is_refused_and_not_kept(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        desk.fail(&order.pickup).await;
        let remarks = Remarks::of_a_minute_ago(platform);

        let refused = End::Done.report(&desk, &order.pickup, &remarks).await.unwrap_err();

        assert_refused(&refused, "TASK_STATE");
        assert_eq!(events(&desk, &order.pickup).await, ["task:created", "task:failed"]);
        assert_eq!(incidents(&desk, &order.pickup).await, []);
    }
}
