//! Late reports of tasks that are open: they are applied, and dispatch gets an incident.

use jiff::SignedDuration;
use proto::{
    AssignTasksRequest, Incident, ReopenTaskRequest, ReportIncidentRequest, StartTaskRequest, Task,
    TaskEvent, incident, task::State, task_event::Actor,
};

use super::{End, Remarks, after, incidents, last_events, minute, move_away};
use crate::{
    couriers::{
        Desk, Order, TODAY, assert_refused, assert_unknown, assignment, now, orders, phone::phone,
    },
    harness::Platform,
};

/// What is described of a report that is applied late.
fn description(end: End) -> String {
    let word = end.word();
    format!("{word} was reported by a courier who does not have the task any more")
}

on_both_databases! {
    /// Unassigned, in another list, in that of another courier who has started it, and to be done later.
    async fn an_open_task_that_left_the_list_ends_with_an_incident(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let phone = phone(platform, &ada).await;
        for end in [End::Done, End::Failed] {
            let [unassigned, moved, started, rescheduled]: [Order; 4] = orders(&client).await;
            move_away(platform, &desk, &unassigned, [&ada, ""]).await;
            move_away(platform, &desk, &moved, [&ada, &ben]).await;
            move_away(platform, &desk, &started, [&ada, &ben]).await;
            desk.start(&started.pickup).await;
            desk.assign(&[&rescheduled.pickup], "", &ada).await;
            minute(platform);
            let later = format!("{TODAY} 13:00-14:00");
            desk.reschedule(&rescheduled.pickup, &later, false).await.unwrap();
            minute(platform);
            minute(platform);
            let remarks = Remarks::of_a_minute_ago(platform);

            for order in [unassigned, moved, started, rescheduled] {
                let ended = end.report(&phone, &order.pickup, &remarks).await.unwrap();

                let mut task = desk.task(&order.pickup).await;
                if task.courier != ada {
                    // Who has it now is not for her.
                    task = Task { courier: String::new(), list_day: String::new(), list_position: 0, ..task };
                }
                assert_eq!(ended, task);
                let state = if end == End::Done { State::Done } else { State::Failed };
                assert_eq!((ended.state(), ended.has_incidents), (state, true));
                let reported = incidents(&desk, &order.pickup).await;
                let incident = Incident {
                    name: reported[0].name.clone(),
                    task: order.pickup.clone(),
                    state: incident::State::Open.into(),
                    description: description(end),
                    failure_reason: end.reason().to_owned(),
                    create_time: after(now(platform), 1),
                    occurred_time: remarks.occurred_time,
                    metadata: [("late".to_owned(), end.word().to_owned())].into(),
                    store: platform.store.clone(),
                    actor: Actor::Courier.into(),
                    api_client: phone.api_client.clone(),
                    ..Incident::default()
                };
                assert_eq!(reported, [incident]);
                let event = TaskEvent {
                    event: format!("task:{}", end.word().to_lowercase()),
                    create_time: now(platform),
                    occurred_time: remarks.occurred_time,
                    failure_reason: end.reason().to_owned(),
                    contact_name: if end == End::Done { "Zoé".to_owned() } else { String::new() },
                    notes: "Left at the door".to_owned(),
                    actor: Actor::Courier.into(),
                    api_client: phone.api_client.clone(),
                    courier: ada.clone(),
                    ..TaskEvent::default()
                };
                let opened = TaskEvent {
                    event: "task:incident-reported".to_owned(),
                    create_time: after(now(platform), 1),
                    contact_name: String::new(),
                    notes: description(end),
                    ..event.clone()
                };
                assert_eq!(last_events(&desk, &order.pickup).await, [event, opened]);
                // The other task is still open, and not Ada's.
                assert_eq!(desk.task(&order.dropoff).await.state(), State::Todo);
            }
        }
    }

    async fn a_report_is_late_for_24_hours(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let credentials = platform.operator().await.create_courier_client(&ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, &ben]).await;

        for (hours, end, task, is_taken) in [
            (24, End::Done, &order.pickup, true),
            (1, End::Done, &order.dropoff, false),
            (0, End::Failed, &order.dropoff, false),
        ] {
            platform.advance(SignedDuration::from_hours(hours));
            // Tokens end meanwhile.
            let phone = Desk::with(platform, &credentials, "courier").await;
            let remarks = Remarks::of_a_minute_ago(platform);
            let ended = end.report(&phone, task, &remarks).await;
            match ended {
                Ok(ended) => assert!(is_taken && ended.has_incidents, "{hours}"),
                Err(refused) => {
                    assert!(!is_taken, "{hours} {refused:?}");
                    assert_unknown(&refused, task);
                }
            }
        }
    }

    /// "A task is its own from its list's day until the end of the next, and for late reports."
    async fn a_report_after_the_last_day_of_the_list_is_late(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let ada = desk.courier("Ada").await;
        let credentials = platform.operator().await.create_courier_client(&ada).await;
        let [order]: [Order; 1] = orders(&client).await;
        desk.assign(&[&order.pickup], "", &ada).await;

        for (hours, task, has_incidents) in [
            (36, None, false),
            (12, Some(&order.pickup), true),
            (24, Some(&order.dropoff), false),
        ] {
            platform.advance(SignedDuration::from_hours(hours));
            let phone = Desk::with(platform, &credentials, "courier").await;
            let Some(task) = task else { continue };
            let remarks = Remarks::of_a_minute_ago(platform);
            match End::Done.report(&phone, task, &remarks).await {
                Ok(done) => assert!(has_incidents && done.has_incidents, "{hours}"),
                Err(refused) => {
                    assert!(!has_incidents, "{hours} {refused:?}");
                    assert_unknown(&refused, task);
                }
            }
        }
    }

    /// A start, a reopening, and what another courier or a list of a day to come had.
    async fn nothing_else_is_taken_late(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let phone = phone(platform, &ada).await;
        let [left, of_ben, of_tomorrow]: [Order; 3] = orders(&client).await;
        move_away(platform, &desk, &left, [&ada, ""]).await;
        move_away(platform, &desk, &of_ben, [&ben, ""]).await;
        let tomorrow = AssignTasksRequest {
            day: crate::couriers::TOMORROW.to_owned(),
            ..assignment(&[&of_tomorrow.pickup], "", &ada)
        };
        desk.assign_tasks(tomorrow).await.unwrap();
        let remarks = Remarks::of_a_minute_ago(platform);

        for order in [&of_ben, &of_tomorrow] {
            for end in [End::Done, End::Failed] {
                let refused = end.report(&phone, &order.pickup, &remarks).await.unwrap_err();
                assert_unknown(&refused, &order.pickup);
            }
        }
        let start = StartTaskRequest { name: left.pickup.clone(), ..Default::default() };
        assert_unknown(&phone.start_task(start).await.unwrap_err(), &left.pickup);
        desk.complete(&left.pickup).await;
        let reopen = ReopenTaskRequest { name: left.pickup.clone(), ..Default::default() };
        assert_unknown(&phone.reopen_task(reopen).await.unwrap_err(), &left.pickup);
        for order in [&left, &of_ben, &of_tomorrow] {
            assert_eq!(incidents(&desk, &order.pickup).await, []);
        }
    }

    /// "The same courier within 10 minutes."
    async fn a_task_is_not_reopened_by_a_courier_who_has_it_but_did_not_complete_it(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let (of_ada, of_ben) = (phone(platform, &ada).await, phone(platform, &ben).await);
        let [order]: [Order; 1] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, &ben]).await;
        minute(platform);
        let remarks = Remarks::of_a_minute_ago(platform);
        End::Done.report(&of_ada, &order.pickup, &remarks).await.unwrap();

        let reopen = ReopenTaskRequest { name: order.pickup.clone(), ..Default::default() };
        let refused = of_ben.reopen_task(reopen.clone()).await.unwrap_err();
        assert_refused(&refused, "TASK_STATE");
        assert_unknown(&of_ada.reopen_task(reopen.clone()).await.unwrap_err(), &order.pickup);
        assert_eq!(desk.task(&order.pickup).await.state(), State::Done);
        assert_eq!(desk.reopen_task(reopen.clone()).await.unwrap().state(), State::Doing);
        of_ben.complete(&order.pickup).await;
        assert_eq!(of_ben.reopen_task(reopen).await.unwrap().state(), State::Doing);
    }

    async fn a_courier_reports_incidents_of_a_task_that_left_its_list(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let (ada, ben) = (desk.courier("Ada").await, desk.courier("Ben").await);
        let credentials = platform.operator().await.create_courier_client(&ada).await;
        let of_ada = Desk::with(platform, &credentials, "courier").await;
        let [order]: [Order; 1] = orders(&client).await;
        move_away(platform, &desk, &order, [&ada, &ben]).await;
        desk.complete(&order.pickup).await;
        let report = |description: &str| ReportIncidentRequest {
            task: order.pickup.clone(),
            description: description.to_owned(),
            ..ReportIncidentRequest::default()
        };

        let reported = of_ada.report_incident(report("The box was wet")).await.unwrap();

        let found = incidents(&desk, &order.pickup).await;
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].name, found[0].actor()), (&reported.name, Actor::Courier));
        let [opened] = last_events(&desk, &order.pickup).await;
        assert_eq!((&*opened.event, &opened.courier), ("task:incident-reported", &ada));
        platform.advance(SignedDuration::from_hours(25));
        let of_ada = Desk::with(platform, &credentials, "courier").await;
        let refused = of_ada.report_incident(report("And torn")).await.unwrap_err();
        assert_unknown(&refused, &order.pickup);
    }
}
