//! Watchers of tasks get their incidents.

use proto::{Incident, ListTasksRequest, task};

use super::super::{Desk, Order, TODAY, TaskChanges, on, orders, watching::first};
use super::{closing::close, report};
use crate::harness::Platform;

/// The incidents of the next message that has some.
async fn next(changes: &mut TaskChanges) -> Vec<Incident> {
    loop {
        let message = first(changes).await;
        if !message.incidents.is_empty() {
            return message.incidents;
        }
    }
}

/// The incidents of all messages until a task is in one.
async fn until(changes: &mut TaskChanges, task: &str) -> Vec<Incident> {
    let mut incidents = Vec::new();
    loop {
        let message = first(changes).await;
        incidents.extend(message.incidents);
        if message.tasks.iter().any(|other| other.name == task) {
            return incidents;
        }
    }
}

on_both_databases! {
    async fn an_incident_is_sent_as_it_is_reported_and_closed_to_those_who_may_list_it(platform: &Platform) {
        let (client, desk) = (platform.client().await, Desk::authorized(platform).await);
        let program = platform.operator().await.create_client("", &["tasks:all"]).await;
        let program = Desk::with(platform, &program, "tasks:all").await;
        let [order, other]: [Order; 2] = orders(&client).await;
        let failed = ListTasksRequest { states: vec![task::State::Failed.into()], ..on(TODAY) };
        let mut watched = desk.watch(None, &on(TODAY)).await.unwrap();
        let mut of_other_list = desk.watch(None, &failed).await.unwrap();
        let mut of_program = program.watch(None, &on(TODAY)).await.unwrap();
        for changes in [&mut watched, &mut of_other_list, &mut of_program] {
            assert_eq!(first(changes).await.incidents, []);
        }

        let wet = desk.report_incident(report(&order.pickup, "Wet")).await.unwrap();
        assert_eq!(next(&mut watched).await, std::slice::from_ref(&wet));
        let closed = desk.close_incident(close(&wet.name, "dried")).await.unwrap();
        assert_eq!(next(&mut watched).await, [closed]);

        desk.fail(&other.pickup).await;
        for changes in [&mut of_other_list, &mut of_program] {
            assert_eq!(until(changes, &other.pickup).await, []);
        }
        assert_eq!(until(&mut watched, &other.pickup).await, []);
    }
}
