//! Incidents are closed once, by dispatch or by a reschedule, which the history and watchers show.

use jiff::SignedDuration;
use proto::{CloseIncidentRequest, Incident, Task, TaskEvent, incident::State, task_event::Actor};

use super::super::{
    Desk, Order, TODAY, TOMORROW, TaskChanges, assert_unknown, assert_violations, now, on, orders,
    watching::first,
};
use super::report;
use crate::harness::{Platform, UNKNOWN_ID};

pub(super) fn close(incident: &str, closed_with: &str) -> CloseIncidentRequest {
    CloseIncidentRequest {
        name: incident.to_owned(),
        closed_with: closed_with.to_owned(),
        ..Default::default()
    }
}

/// Waits until a stream has a task with or without incidents.
async fn wait_for(changes: &mut TaskChanges, name: &str, has_incidents: bool) -> Task {
    loop {
        let message = first(changes).await;
        let mut tasks = message.tasks.into_iter();
        let is_it = |task: &Task| task.name == name && task.has_incidents == has_incidents;
        if let Some(task) = tasks.find(is_it) {
            return task;
        }
    }
}

on_both_databases! {
    async fn an_incident_is_closed_once_with_what_was_done(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let other_desk = Desk::authorized(platform).await;
        let [order]: [Order; 1] = orders(&client).await;
        let wet = desk.report_later(platform, &order.pickup, "Wet").await;
        let torn = desk.report_later(platform, &order.pickup, "Torn").await;
        platform.advance(SignedDuration::from_mins(1));

        let closed = desk.close_incident(close(&wet.name, " dried ")).await.unwrap();

        let expected = Incident {
            state: State::Closed.into(),
            close_time: now(platform),
            closed_with: "dried".to_owned(),
            ..wet
        };
        assert_eq!(closed, expected);
        assert!(desk.task(&order.pickup).await.has_incidents);
        platform.advance(SignedDuration::from_mins(1));
        let again = other_desk.close_incident(close(&expected.name, "again")).await.unwrap();
        assert_eq!(again, expected);
        let torn = desk.close_incident(close(&torn.name, "")).await.unwrap();
        assert_eq!((torn.state(), &*torn.closed_with), (State::Closed, ""));
        assert!(!desk.task(&order.pickup).await.has_incidents);
        assert_eq!(desk.incidents_of(&order.pickup).await, [torn, expected]);

        let event = |event: &str, minute, notes: &str| TaskEvent {
            event: format!("task:incident-{event}"),
            create_time: Some(minute),
            occurred_time: Some(minute),
            notes: notes.to_owned(),
            actor: Actor::Dispatch.into(),
            api_client: desk.api_client.clone(),
            ..Default::default()
        };
        let [second, third, fourth, fifth] = [3, 2, 1, 0].map(|ago| prost_types::Timestamp {
            seconds: now(platform).unwrap().seconds - 60 * ago,
            nanos: 0,
        });
        let mut history = vec![
            event("reported", second, "Wet"),
            event("reported", third, "Torn"),
            event("closed", fourth, "dried"),
            event("closed", fifth, ""),
        ];
        assert_eq!(desk.history(&order.pickup).await[1..], history);
        for event in &mut history {
            event.notes.clear();
            event.set_actor(Actor::Unspecified);
            event.api_client.clear();
        }
        let shop = Desk::with(platform, &platform.demo_client, "tasks").await;
        assert_eq!(shop.history(&order.pickup).await[1..], history);
    }

    async fn what_is_no_incident_is_not_closed(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let wet = desk.report_later(platform, &order.pickup, "Wet").await;
        let unknown = format!("incidents/{UNKNOWN_ID}");

        let refused = desk.close_incident(close(&unknown, "")).await.unwrap_err();
        assert_unknown(&refused, &unknown);
        let too_long = close(&wet.name, &"a".repeat(2001));
        let refused = desk.close_incident(too_long).await.unwrap_err();
        assert_violations(&refused, &["closed_with"]);

        assert_eq!(desk.incidents_of(&order.pickup).await, [wet]);
    }

    async fn a_reschedule_closes_the_incidents_of_the_tasks_that_it_moves(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let of_pickup = desk.report_later(platform, &order.pickup, "Closed").await;
        let first = desk.report_later(platform, &order.dropoff, "Not at home").await;
        let second = desk.report_later(platform, &order.dropoff, "Dog").await;
        platform.advance(SignedDuration::from_mins(1));

        let slot = format!("{TOMORROW} 12:00-14:00");
        let rescheduled = desk.reschedule(&order.dropoff, &slot, false).await.unwrap();

        assert!(!rescheduled.has_incidents);
        let closed_at = prost_types::Timestamp { nanos: 1000, ..now(platform).unwrap() };
        let closed = |incident: Incident| Incident {
            state: State::Closed.into(),
            close_time: Some(closed_at),
            closed_with: "rescheduled".to_owned(),
            ..incident
        };
        assert_eq!(desk.incidents_of(&order.dropoff).await, [closed(second), closed(first)]);
        assert_eq!(desk.incidents_of(&order.pickup).await, [of_pickup]);
        assert!(desk.task(&order.pickup).await.has_incidents);
        let history = desk.history(&order.dropoff).await;
        let names: Vec<_> = history.iter().map(|event| event.event.as_str()).collect();
        let expected = [
            "task:created",
            "task:incident-reported",
            "task:incident-reported",
            "task:rescheduled",
            "task:incident-closed",
        ];
        assert_eq!(names, expected);
        assert_eq!(history[4].create_time, Some(closed_at));
        // At the same instant: later than what the reschedule closed.
        let again = desk.report_incident(report(&order.dropoff, "Rain")).await.unwrap();
        let after = prost_types::Timestamp { nanos: 2000, ..closed_at };
        assert_eq!(again.create_time, Some(after));
    }

    async fn watchers_get_a_task_when_its_first_incident_opens_and_its_last_one_closes(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let [order]: [Order; 1] = orders(&client).await;
        let position = desk.list_tasks(on(TODAY)).await.unwrap().position;
        let mut changes = desk.watch(Some(position), &on(TODAY)).await.unwrap();

        let wet = desk.report_later(platform, &order.dropoff, "Wet").await;
        let task = wait_for(&mut changes, &order.dropoff, true).await;

        assert_eq!(task.update_time, now(platform));
        desk.close_incident(close(&wet.name, "")).await.unwrap();
        wait_for(&mut changes, &order.dropoff, false).await;
    }
}
